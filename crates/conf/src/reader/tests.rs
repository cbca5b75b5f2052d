//! Reading as a whole. Apache's results for whole configurations are in tests/recorded.txt.

use std::fs;
use std::path::PathBuf;

use bstr::{BStr, ByteSlice};

use super::*;
use crate::diag::Severity;
use crate::tree::Node;

/// Accepts every module and directive, except those called `nope`.
#[derive(Default)]
struct Everything {
    loaded: Vec<String>,
}

impl Host for Everything {
    fn module_active(&self, name: &BStr) -> bool {
        !name.starts_with(b"nope")
    }

    fn directive_known(&self, name: &BStr) -> bool {
        !name.contains_str("nope")
    }

    fn load_module(&mut self, name: &crate::Arg, _: &Path) -> Result<(), Box<Diagnostic>> {
        self.loaded.push(name.text.to_string());
        Ok(())
    }
}

fn htaccess(text: &str) -> (Tree, Vec<Diagnostic>) {
    let mut defines = Defines::new();
    defines.set(b"V", Some(b"x y"));
    let name = Path::new("/x/.htaccess");
    read_htaccess(
        text.as_bytes(),
        name,
        &mut Everything::default(),
        &defines,
        &Macros::default(),
        name,
    )
}

fn outline(nodes: &[Node]) -> String {
    let one = |node: &Node| match &node.children {
        Some(children) => format!("{} {}{{{}}}", node.name, node.args.bytes(), outline(children)),
        None => format!("{} {}", node.name, node.args.bytes()),
    };
    nodes.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A directory that is removed when the value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let path = std::env::temp_dir().join(format!("conf-{name}-{}", std::process::id()));
        for (name, text) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Folder(path)
    }

    fn read(&self, options: Options) -> (Tree, Vec<Diagnostic>) {
        let options = Options { server_root: self.0.clone(), ..options };
        read_config(&self.0.join("main.conf"), &options, &mut Everything::default())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn sections_and_directives_become_a_tree() {
    let (tree, found) = htaccess(
        "A 1\n<Files \"a b\" >\n  B \\\n 2\n <If true>\n C\n </if>\n</Files> x\n# D\n<E>\n</E>\n",
    );
    assert_eq!(outline(&tree.nodes), "A 1; Files \"a b\"{B 2; If true{C }}; E {}");
    assert_eq!(found, []);
}

#[test]
fn true_conditions_vanish_and_false_ones_are_not_looked_at() {
    let (tree, found) = htaccess(
        "<IfModule mod_x.c>\nA ${HOME_OF_NONE:x}\n<IfDefine X>\nB ${NOT_SEEN}\n<X>\n</X>\n\
         </IfDefine>\n<IfDefine !X>\nC\n</IfDefine>\n</IfModule>\n<IfDefine V>\nD\n\
         </IfDefine>\n<IfVersion >= 2.5>\nE\n</IfVersion>",
    );
    assert_eq!(outline(&tree.nodes), "A ${HOME_OF_NONE:x}; C ; D ");
    assert_eq!(found, []);
}

#[test]
fn words_have_places_over_lines_and_values() {
    let (tree, _) = htaccess("  A one \"two \\\"2\" \\\n   three ${V} end\n");
    let words = tree.nodes[0].words().unwrap();
    let shown: Vec<_> = words
        .iter()
        .map(|word| (word.text.to_string(), word.span.line, word.span.column, word.span.length))
        .collect();
    let wanted = [
        ("one", 1, 5, 3),
        ("two \"2", 1, 9, 9),
        ("three", 2, 4, 5),
        ("x", 2, 10, 4),
        ("y", 2, 10, 4),
        ("end", 2, 15, 3),
    ];
    let wanted: Vec<_> = wanted.map(|(w, l, c, n)| (w.to_owned(), l, c, n)).into();
    assert_eq!(shown, wanted);
}

#[test]
fn reading_goes_on_after_errors() {
    let (tree, found) = htaccess(
        "</Stray>\n<Files x>\nA\n</Location>\nInclude x\n<Dir y\nB\n</Dir>\n</Files>\nUse m\nC\n\
         <Open>\nD\n",
    );
    assert_eq!(outline(&tree.nodes), "Files x{A ; Dir y{B }}; C ; Open {D }");
    let lines: Vec<u32> = found.iter().filter_map(|found| Some(found.span?.line)).collect();
    assert_eq!(lines, [1, 4, 5, 6, 10, 12]);
    assert!(found.iter().all(|found| found.severity == Severity::Error));
}

#[test]
fn a_tag_of_an_outer_section_closes_what_is_in_it() {
    let (tree, found) = htaccess("<A>\n<B>\nx\n</A>\ny\n");
    assert_eq!(outline(&tree.nodes), "A {B {x }}; y ");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "Expected </B> but saw </A>");
}

#[test]
fn macros_expand_with_places_of_their_own() {
    let (tree, found) =
        htaccess("<Macro M $a %b>\n# gone\nA $a-%b\n<S $a>\nB\n</S>\n</Macro>\nUse m 1 \"2 3\"\n");
    assert_eq!(outline(&tree.nodes), "A 1-2 3; S 1{B }");
    assert_eq!(found, []);
    let name = tree.sources.name(tree.nodes[0].span.file);
    assert_eq!(
        name,
        "macro 'm' (defined on line 1 of \"/x/.htaccess\") used on line 8 of \"/x/.htaccess\""
    );
}

#[test]
fn macros_can_not_grow_without_end() {
    let mut text =
        String::from("<Macro m0>\nX aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n</Macro>\n");
    for level in 1..24 {
        let below = level - 1;
        text.push_str(&format!(
            "<Macro m{level}>\n{}</Macro>\n",
            format!("Use m{below}\n").repeat(8)
        ));
    }
    text.push_str("Use m23\n");
    let (_, found) = htaccess(&text);
    assert!(found.iter().any(|found| found.message.contains("macros expand to over")));
}

#[test]
fn deep_nesting_is_refused() {
    let depth = 50_000;
    let (tree, found) = htaccess(&("<A>\n".repeat(depth) + &"</A>\n".repeat(depth)));
    assert_eq!(tree.nodes.len(), 1);
    assert!(found[0].message.contains("nested deeper"), "{}", found[0].message);
}

#[test]
fn bytes_of_any_kind_survive() {
    let text = b"A \xff\xfe\nB \"\xe9\0 x\"\nC\r\n";
    let name = Path::new("/x/.htaccess");
    let (tree, found) = read_htaccess(
        text,
        name,
        &mut Everything::default(),
        &Defines::new(),
        &Macros::default(),
        name,
    );
    assert_eq!(tree.nodes[0].words().unwrap()[0].text, b"\xff\xfe".as_bstr());
    assert_eq!(tree.nodes[1].words().unwrap()[0].text, b"\xe9".as_bstr());
    assert_eq!(tree.nodes[2].args.bytes(), "");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].severity, Severity::Warning);
}

#[test]
fn files_are_included_in_order_and_listed_as_apache_lists_them() {
    let folder = Folder::new(
        "include",
        &[
            (
                "main.conf",
                "A\nInclude sub/*.conf\n<S>\nIncludeOptional none/*\nInclude dir\n</S>\n",
            ),
            ("sub/2.conf", "C\n"),
            ("sub/1.conf", "B\n# x\nInclude more.conf\n"),
            ("sub/.hidden.conf", "Hidden\n"),
            ("sub/3.txt", "Text\n"),
            ("more.conf", "More\n"),
            ("dir/b/x", "E\n"),
            ("dir/a", "D\n"),
        ],
    );
    let options = Options {
        before: vec!["Before 1".into()],
        after: vec!["After".into()],
        ..Options::default()
    };
    let (tree, found) = folder.read(options);
    assert_eq!(found, []);
    assert_eq!(outline(&tree.nodes), "Before 1; A ; B ; More ; C ; S {D ; E }; After ");
    let root = folder.0.display().to_string();
    let wanted = "Included configuration files:\n  (*) @/main.conf\n    (2) @/sub/1.conf\n      \
                  (3) @/more.conf\n    (3) @/sub/2.conf\n    (5) @/dir/a\n    (5) @/dir/b/x\n";
    assert_eq!(tree.dump_includes().as_bstr(), wanted.replace('@', &root).as_bytes().as_bstr());
}

#[test]
fn a_recursion_of_includes_ends() {
    let folder = Folder::new("recursion", &[("main.conf", "A\nInclude main.conf\n")]);
    let (tree, found) = folder.read(Options::default());
    assert_eq!(tree.nodes.len(), MAX_INCLUDE_DEPTH + 1);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].via.len(), MAX_INCLUDE_DEPTH);
    assert!(found[0].message.starts_with("Exceeded maximum include depth of 128"));
}

#[test]
fn a_main_file_that_is_not_there_is_an_error() {
    let (_, found) = Folder::new("missing", &[]).read(Options::default());
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("No such file or directory"), "{}", found[0].message);
    assert_eq!(found[0].span, None);
}

#[test]
fn defines_of_the_command_line_have_no_value() {
    let folder = Folder::new(
        "defines",
        &[("main.conf", "<IfDefine D>\nA ${D}\nDefine E 1\nDefine F\nUnDefine D\n</IfDefine>\n")],
    );
    let options = Options { defines: vec!["D".into()], ..Options::default() };
    let (tree, found) = folder.read(options);
    assert_eq!(outline(&tree.nodes), "A ${D}");
    assert_eq!(found[0].message, "Config variable ${D} is not defined");
    assert_eq!(tree.dump_defines().as_bstr(), "Define: F\nDefine: E=1\n");
}

#[test]
fn debians_own_tree_is_read_without_a_finding() {
    let main = Path::new("/etc/apache2/apache2.conf");
    if !main.exists() {
        return;
    }
    let mut before = Vec::new();
    for (name, value) in [
        ("APACHE_RUN_USER", "www-data"),
        ("APACHE_RUN_GROUP", "www-data"),
        ("APACHE_PID_FILE", "/run/apache2/apache2.pid"),
        ("APACHE_RUN_DIR", "/run/apache2"),
        ("APACHE_LOCK_DIR", "/run/lock/apache2"),
        ("APACHE_LOG_DIR", "/var/log/apache2"),
    ] {
        before.push(format!("Define {name} {value}").into());
    }
    let options = Options { before, ..Options::default() };
    let mut host = Everything::default();
    let (tree, found) = read_config(main, &options, &mut host);
    assert_eq!(found, []);
    assert!(host.loaded.len() > 5 && tree.includes.len() > 10);
    assert!(tree.nodes.iter().any(|node| node.is("VirtualHost")));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_without_panic(lines in proptest::collection::vec(line(), 0..24)) {
        let text = lines.join("\n");
        let (tree, found) = htaccess(&text);
        for diagnostic in &found {
            diagnostic.render_plain(&tree.sources);
            diagnostic.render(&tree.sources, false);
        }
        check_spans(&tree, &tree.nodes);
    }

    #[test]
    fn quoted_words_come_back(words in proptest::collection::vec("[ -~é]{1,12}", 1..5)) {
        let quoted: Vec<String> = words
            .iter()
            .map(|word| format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")))
            .collect();
        let (tree, _) = htaccess(&format!("A {}\n", quoted.join(" ").replace("${", "$ {")));
        let found = tree.nodes[0].words().unwrap();
        let found: Vec<String> = found.iter().map(|word| word.text.to_string()).collect();
        let words: Vec<String> = words.iter().map(|word| word.replace("${", "$ {")).collect();
        assert_eq!(found, words);
    }
}

fn line() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    prop_oneof![
        "[ -~\\t\\x00é]{0,20}",
        proptest::sample::select(vec![
            "<IfModule x>",
            "<IfModule nope>",
            "</IfModule>",
            "<IfVersion !< 2.4>",
            "</IfVersion>",
            "<Macro m $a @b>",
            "</Macro>",
            "Use m 1 2",
            "Use m",
            "UndefMacro m",
            "<Files \"a\">",
            "</Files>",
            "Define X \"1 2\"",
            "A ${X} \"b c\" \\",
            "Error x",
            "<IfDefine !X>",
            "</IfDefine>",
            "B $a @b",
            "Include x",
            "<",
            "</",
            ">",
            "</>",
            "<>",
            "\"",
            "\\",
        ])
        .prop_map(str::to_owned),
    ]
}

/// Checks that every span is within a line of its source.
fn check_spans(tree: &Tree, nodes: &[Node]) {
    for node in nodes {
        let words = node.words().unwrap();
        for span in words.iter().map(|word| word.span).chain([node.span]) {
            let line = tree.sources.line(span).unwrap();
            let end = usize::try_from(span.column + span.length).unwrap();
            assert!(end <= line.chars().count() + 2, "{span:?} in {line:?}");
        }
        check_spans(tree, node.children.as_deref().unwrap_or(&[]));
    }
}
