//! The directives that are executed while reading.

use bstr::{BString, ByteSlice};

use super::condition::Condition;
use super::host::Host;
use super::stream::Streams;
use super::{Reader, Statement};
use crate::diag::Diagnostic;
use crate::tree::Arg;
use crate::values::relative_to;
use crate::word::Words;

/// A directive or section that the reader executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Executed {
    Define,
    UnDefine,
    Include,
    IncludeOptional,
    LoadModule,
    LoadFile,
    ServerRoot,
    Error,
    MacroDefinition,
    Use,
    UndefMacro,
    MacroIgnoreEmptyArgs,
    MacroIgnoreBadNesting,
    Condition(Condition),
}

/// Each name in lower case, and whether a module must be active for it.
const TABLE: &[(&str, Executed, bool)] = &[
    ("define", Executed::Define, false),
    ("undefine", Executed::UnDefine, false),
    ("include", Executed::Include, false),
    ("includeoptional", Executed::IncludeOptional, false),
    ("loadmodule", Executed::LoadModule, false),
    ("loadfile", Executed::LoadFile, false),
    ("serverroot", Executed::ServerRoot, false),
    ("error", Executed::Error, false),
    ("<macro", Executed::MacroDefinition, true),
    ("use", Executed::Use, true),
    ("undefmacro", Executed::UndefMacro, true),
    ("macroignoreemptyargs", Executed::MacroIgnoreEmptyArgs, true),
    ("macroignorebadnesting", Executed::MacroIgnoreBadNesting, true),
    ("<ifdefine", Executed::Condition(Condition::Define), false),
    ("<ifmodule", Executed::Condition(Condition::Module), false),
    ("<iffile", Executed::Condition(Condition::File), false),
    ("<ifdirective", Executed::Condition(Condition::Directive), false),
    ("<ifsection", Executed::Condition(Condition::Section), false),
    ("<ifversion", Executed::Condition(Condition::Version), true),
];

impl Executed {
    /// The directive of this name that is executed; `None` if it goes into the tree.
    pub(super) fn by_name(name: &BString, host: &dyn Host) -> Option<Executed> {
        let entry = TABLE.iter().find(|(known, ..)| name.eq_ignore_ascii_case(known.as_bytes()));
        let (_, executed, of_module) = entry?;
        (!of_module || host.directive_known(name.as_bstr())).then_some(*executed)
    }

    /// Whether it is allowed in `.htaccess`.
    fn is_for_htaccess(self) -> bool {
        !matches!(
            self,
            Executed::Define
                | Executed::UnDefine
                | Executed::Include
                | Executed::IncludeOptional
                | Executed::LoadModule
                | Executed::LoadFile
                | Executed::ServerRoot
        )
    }
}

impl Reader<'_> {
    pub(super) fn execute(
        &mut self,
        executed: Executed,
        statement: Statement,
        streams: &mut Streams,
    ) {
        let allowed = executed.is_for_htaccess() && self.host.allowed(statement.name.as_bstr());
        if self.is_htaccess && !allowed {
            if self.host.forgives() {
                // Of a section this is the first line alone: its last one then closes nothing.
                let what = format!("{} in .htaccess forbidden by AllowOverride", statement.name);
                return self.warn(statement.span, "AH02295", what);
            }
            let message = format!("{} not allowed here", statement.name);
            self.walk_error(statement.span, message);
            return;
        }
        match executed {
            Executed::Define => self.define(&statement),
            Executed::UnDefine => self.undefine(&statement),
            Executed::Include => self.include(&statement, false),
            Executed::IncludeOptional => self.include(&statement, true),
            Executed::LoadModule => self.load_module(&statement),
            Executed::LoadFile => self.load_file(&statement),
            Executed::ServerRoot => self.server_root(statement),
            Executed::Error => self.error_directive(&statement),
            Executed::MacroDefinition => self.define_macro(statement, streams),
            Executed::Use => self.use_macro(&statement, streams),
            Executed::UndefMacro => self.undefine_macro(&statement),
            Executed::MacroIgnoreEmptyArgs => self.tree.macros.ignores_empty_arguments = true,
            Executed::MacroIgnoreBadNesting => self.tree.macros.ignores_bad_nesting = true,
            Executed::Condition(condition) => self.condition(condition, statement, streams),
        }
    }

    fn define(&mut self, statement: &Statement) {
        let message = "Define takes 1-2 arguments, Define a variable, optionally to a value.  \
                       Same as passing -D to the command line.";
        let words = words(statement);
        let (name, value) = match words.as_slice() {
            [name] if !name.text.is_empty() => (name, None),
            [name, value] if !name.text.is_empty() => (name, Some(value)),
            _ => return self.error(statement.span, message),
        };
        if self.is_usable_name(name) {
            self.tree.defines.set(&name.text, value.map(|value| value.text.as_slice()));
        }
    }

    fn undefine(&mut self, statement: &Statement) {
        let message = "UnDefine takes one argument, Undefine the existence of a variable. \
                       Undo a Define.";
        if let Some(name) = self.only_word(statement, message)
            && self.is_usable_name(&name)
        {
            self.tree.defines.unset(&name.text);
        }
    }

    fn is_usable_name(&mut self, name: &Arg) -> bool {
        let usable = !name.text.contains(&b':');
        if !usable {
            self.error(name.span, "Variable name must not contain ':'");
        }
        usable
    }

    fn load_module(&mut self, statement: &Statement) {
        let words = words(statement);
        let both = words.as_slice();
        let [name, file] = both.iter().filter(|word| !word.text.is_empty()).collect::<Vec<_>>()[..]
        else {
            let message = "LoadModule takes two arguments, a module name and the name of a \
                           shared object file to load it from";
            return self.error(statement.span, message);
        };
        let Some(path) = relative_to(&self.tree.server_root, &file.text) else {
            return self.error(file.span, format!("Invalid LoadModule path {}", file.text));
        };
        if let Err(mut found) = self.host.load_module(name, &path) {
            found.via = self.via.as_slice().into();
            self.diagnostics.push(Diagnostic { code: "", ..*found });
        }
    }

    fn load_file(&mut self, statement: &Statement) {
        let words = words(statement);
        if words.is_empty() {
            let message = "LoadFile requires at least one argument, shared object file or \
                           library to load into the server at runtime";
            return self.error(statement.span, message);
        }
        for file in words {
            let Some(path) = relative_to(&self.tree.server_root, &file.text) else {
                self.error(file.span, format!("Invalid LoadFile path {}", file.text));
                continue;
            };
            if let Err(message) = self.host.load_file(&path) {
                self.error(file.span, message);
            }
        }
    }

    /// Takes effect at once, for the paths that follow. The node stays, for checks of its context.
    fn server_root(&mut self, statement: Statement) {
        let message = "ServerRoot takes one argument, Common directory of server-related files \
                       (logs, confs, etc.)";
        let Some(root) = self.only_word(&statement, message) else { return };
        let absolute = root.text.starts_with(b"/");
        let path = relative_to(&self.tree.server_root, &root.text);
        match path.filter(|path| absolute && path.is_dir()) {
            Some(path) => {
                self.tree.server_root = path;
                self.add_directive(statement);
            }
            None => self.error(root.span, "ServerRoot must be a valid directory"),
        }
    }

    fn error_directive(&mut self, statement: &Statement) {
        let text = statement.args.bytes();
        let message = match (text.first(), text.last()) {
            (None, _) | (_, None) => "The Error directive was used with no message.".to_owned(),
            // Quotes around the whole text are dropped.
            (Some(first @ (b'"' | b'\'')), Some(last)) if first == last => {
                text.get(1..text.len() - 1).unwrap_or(&[]).as_bstr().to_string()
            }
            _ => text.to_string(),
        };
        self.walk_error(statement.span, message);
    }

    /// The argument of a directive that takes one. As in Apache, an empty one counts as missing.
    pub(super) fn only_word(&mut self, statement: &Statement, message: &str) -> Option<Arg> {
        let mut words = words(statement).into_iter();
        match (words.next().filter(|word| !word.text.is_empty()), words.next()) {
            (Some(word), None) => Some(word),
            _ => {
                self.error(statement.span, message);
                None
            }
        }
    }
}

pub(super) fn words(statement: &Statement) -> Vec<Arg> {
    Words::new(&statement.args).collect()
}

impl Statement {
    /// The section's name without `<`, as in a node.
    pub(super) fn section_name(&self) -> BString {
        self.name.strip_prefix(b"<").unwrap_or(&self.name).into()
    }
}
