//! The mime.types file: a type and its extensions per line.

use std::collections::HashMap;
use std::path::Path;

/// Most bytes of the file.
const TYPES_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Media types by lower-case extension.
#[derive(Clone, Debug, Default)]
pub struct TypesFile {
    by_extension: HashMap<Vec<u8>, Vec<u8>>,
}

impl TypesFile {
    /// Reads the file at `path`.
    pub fn read(path: &Path) -> std::io::Result<TypesFile> {
        Ok(TypesFile::parse(&regular::read(path, TYPES_BYTES_MAX)?))
    }

    /// Parses lines `type extension…`; `#` begins a comment line.
    pub fn parse(text: &[u8]) -> TypesFile {
        let mut by_extension = HashMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let Some(media_type) = words.next().filter(|word| word.first() != Some(&b'#')) else {
                continue;
            };
            for extension in words {
                by_extension.insert(extension.to_ascii_lowercase(), media_type.to_vec());
            }
        }
        TypesFile { by_extension }
    }

    /// The type of a lower-case extension.
    pub fn get(&self, extension: &[u8]) -> Option<&[u8]> {
        self.by_extension.get(extension).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::TypesFile;

    #[test]
    fn comments_and_types_without_extensions_are_nothing() {
        let types = TypesFile::parse(b"# x y\ntext/html\thtml HTM\napplication/x\n\n");
        assert_eq!(types.get(b"htm"), Some(&b"text/html"[..]));
        assert_eq!(types.get(b"y"), None);
    }
}
