//! The modules of a crate, their names, and the file that defines the target of a path.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{Token, group, tokens};

/// A file of a crate: its path below `src/` and its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
}

/// A path that the code names, in an import or elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    pub(crate) path: Vec<String>,
    /// The module that contains the path.
    pub(crate) module: usize,
}

/// A leaf of a `use`.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// The name of the import in the module; `*` is a glob.
    pub(crate) alias: String,
    pub(crate) is_public: bool,
}

#[derive(Debug)]
pub(crate) struct Module<'a> {
    pub(crate) file: &'a str,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    defined: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
}

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    Module(usize),
    /// An item that the file defines.
    Item(&'a str),
}

/// The modules of a crate, and every path that they name.
#[derive(Debug)]
pub(crate) struct Modules<'a> {
    files: &'a [File<'a>],
    all: Vec<Module<'a>>,
    pub(crate) roots: Vec<usize>,
    /// The paths outside of imports.
    pub(crate) named: BTreeSet<Named>,
    /// The words of each file outside of its imports.
    words: BTreeMap<&'a str, BTreeSet<String>>,
}

impl<'a> Modules<'a> {
    /// The modules that are reached from `lib.rs`, `main.rs` and the programs in `bin/`, without the modules of tests.
    pub(crate) fn of(files: &'a [File<'a>]) -> Self {
        let mut modules = Self {
            files,
            all: Vec::new(),
            roots: Vec::new(),
            named: BTreeSet::new(),
            words: BTreeMap::new(),
        };
        for file in files.iter().filter(|file| is_root(file.path)) {
            let root = modules.add(file.path, None);
            modules.roots.push(root);
            modules.read(root, *file);
        }
        modules
    }

    pub(crate) fn get(&self, module: usize) -> Option<&Module<'a>> {
        self.all.get(module)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Module<'a>)> {
        self.all.iter().enumerate()
    }

    pub(crate) fn says(&self, file: &str, word: &str) -> bool {
        self.words
            .get(file)
            .is_some_and(|words| words.contains(word))
    }

    /// The names of a module: its items, its children, and its imports.
    pub(crate) fn names(&self, module: usize) -> BTreeSet<String> {
        let Some(module) = self.get(module) else {
            return BTreeSet::new();
        };
        let defined = module.defined.iter().cloned();
        let children = module.children.keys().cloned();
        let imported = module.imports.iter().map(|import| import.alias.clone());
        defined.chain(children).chain(imported).collect()
    }

    fn add(&mut self, file: &'a str, parent: Option<usize>) -> usize {
        self.all.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            defined: BTreeSet::new(),
            imports: Vec::new(),
        });
        self.all.len() - 1
    }

    fn read(&mut self, module: usize, file: File<'a>) {
        let tokens = tokens(file.text);
        self.items(module, &tokens);
    }

    /// Reads the items of a module, and all paths in them.
    fn items(&mut self, module: usize, tokens: &[Token<'_>]) {
        let mut at = 0;
        let mut depth = 0_usize;
        let mut is_public = false;
        while let Some(token) = tokens.get(at) {
            let after = tokens.get(at + 1..).unwrap_or_default();
            at += 1;
            match (token, after) {
                (Token::Word("use"), [Token::Word(_) | Token::Path | Token::Sign('{'), ..]) => {
                    let end = until_semicolon(after);
                    let tree = after.get(..end).unwrap_or_default();
                    self.import(module, tree, is_public, depth == 0);
                    at += end;
                }
                (Token::Word("mod"), [Token::Word(name), Token::Sign(';'), ..]) if depth == 0 => {
                    self.child_in_file(module, name);
                    at += 2;
                }
                (Token::Word("mod"), [Token::Word(name), Token::Sign('{'), ..]) => {
                    let body = after.get(1..).unwrap_or_default();
                    let length = group(body);
                    let file = self.file_of(module);
                    let child = self.add(file, Some(module));
                    self.adopt(module, name, child);
                    self.items(child, body.get(1..length - 1).unwrap_or_default());
                    at += 1 + length;
                }
                (Token::Word(kind), after) => {
                    if depth == 0 {
                        self.define(module, kind, after);
                    }
                    let is_joined = at > 1 && tokens.get(at - 2) == Some(&Token::Path);
                    if !is_joined {
                        self.name(module, kind, after);
                    }
                    self.say(module, kind);
                }
                (Token::Sign('{' | '(' | '['), _) => depth += 1,
                (Token::Sign('}' | ')' | ']'), _) => depth = depth.saturating_sub(1),
                _ => {}
            }
            is_public = match token {
                Token::Word("pub") => true,
                Token::Sign('{' | '}' | ';') => false,
                _ => is_public,
            };
        }
    }

    fn say(&mut self, module: usize, word: &str) {
        let file = self.file_of(module);
        self.words.entry(file).or_default().insert(word.to_owned());
    }

    fn file_of(&self, module: usize) -> &'a str {
        self.get(module).map_or("", |module| module.file)
    }

    fn adopt(&mut self, module: usize, name: &str, child: usize) {
        if let Some(module) = self.all.get_mut(module) {
            module.children.insert(name.to_owned(), child);
        }
    }

    fn child_in_file(&mut self, module: usize, name: &str) {
        let directory = self.directory(module);
        let paths = [
            format!("{directory}{name}.rs"),
            format!("{directory}{name}/mod.rs"),
        ];
        let file = self
            .files
            .iter()
            .find(|file| paths.iter().any(|path| path == file.path));
        if let Some(file) = file {
            let child = self.add(file.path, Some(module));
            self.adopt(module, name, child);
            self.read(child, *file);
        }
    }

    /// The directory of a module's children.
    fn directory(&self, module: usize) -> String {
        let file = self.file_of(module);
        let (directory, name) = file.rsplit_once('/').map_or(("", file), |(a, b)| (a, b));
        let slash = if directory.is_empty() { "" } else { "/" };
        match name {
            "mod.rs" => format!("{directory}{slash}"),
            _ if is_root(file) => format!("{directory}{slash}"),
            name => format!("{directory}{slash}{}/", name.trim_end_matches(".rs")),
        }
    }

    fn define(&mut self, module: usize, kind: &str, after: &[Token<'_>]) {
        let name = match (kind, after) {
            ("const", [Token::Word("fn" | "unsafe" | "async" | "extern"), ..]) => return,
            (
                "fn" | "struct" | "enum" | "trait" | "union" | "type" | "const" | "static",
                [Token::Word(name), ..],
            )
            | ("macro_rules", [Token::Sign('!'), Token::Word(name), ..]) => name,
            _ => return,
        };
        if let Some(module) = self.all.get_mut(module) {
            module.defined.insert((*name).to_owned());
        }
    }

    /// Records a path of two names or more.
    fn name(&mut self, module: usize, first: &str, mut after: &[Token<'_>]) {
        let mut path = vec![first.to_owned()];
        while let [Token::Path, Token::Word(name), rest @ ..] = after {
            path.push((*name).to_owned());
            after = rest;
        }
        if path.len() > 1 {
            self.named.insert(Named { path, module });
        }
    }

    /// Reads the tree of a `use`. A `use` within a function counts as an import of the whole module, which is accurate enough, but
    /// defines no name.
    fn import(&mut self, module: usize, tree: &[Token<'_>], is_public: bool, is_item: bool) {
        let mut leaves = Vec::new();
        leaves_of(tree, &mut Vec::new(), &mut leaves);
        for (path, alias) in leaves {
            let import = Import {
                path,
                alias,
                is_public: is_public && is_item,
            };
            if let Some(module) = self.all.get_mut(module) {
                module.imports.push(import);
            }
        }
    }

    /// The target of a path in a module, or `None` if the path leads out of the crate.
    pub(crate) fn resolve(&self, module: usize, path: &[String]) -> Option<Target<'a>> {
        self.resolve_but(module, path, &mut BTreeSet::new())
    }

    fn resolve_but(
        &self,
        module: usize,
        path: &[String],
        seen: &mut BTreeSet<(usize, String)>,
    ) -> Option<Target<'a>> {
        let (first, mut rest) = path.split_first()?;
        let mut here = match first.as_str() {
            "crate" => Target::Module(self.root_of(module)),
            "self" => Target::Module(module),
            "super" => Target::Module(self.get(module)?.parent?),
            name => self.lookup(module, name, seen)?,
        };
        while let (Target::Module(module), Some((name, after))) = (here, rest.split_first()) {
            here = match name.as_str() {
                "super" => Target::Module(self.get(module)?.parent?),
                "self" => here,
                name => self
                    .lookup(module, name, seen)
                    .or_else(|| self.made_by_a_macro(module, name))?,
            };
            rest = after;
        }
        Some(here)
    }

    fn root_of(&self, mut module: usize) -> usize {
        while let Some(parent) = self.get(module).and_then(|module| module.parent) {
            module = parent;
        }
        module
    }

    fn lookup(
        &self,
        id: usize,
        name: &str,
        seen: &mut BTreeSet<(usize, String)>,
    ) -> Option<Target<'a>> {
        if !seen.insert((id, name.to_owned())) {
            return None;
        }
        let module = self.get(id)?;
        let found = if module.defined.contains(name) {
            Some(Target::Item(module.file))
        } else if let Some(child) = module.children.get(name) {
            Some(Target::Module(*child))
        } else {
            let named = module.imports.iter().filter(|import| import.alias == name);
            let globs = module.imports.iter().filter(|import| import.alias == "*");
            let by_name = named.map(|import| (import, false));
            by_name
                .chain(globs.map(|import| (import, true)))
                .find_map(|(import, is_glob)| {
                    let target = self.resolve_but(id, &import.path, seen)?;
                    match (target, is_glob) {
                        (Target::Module(module), true) => self.lookup(module, name, seen),
                        (_, true) => None,
                        (target, false) => Some(target),
                    }
                })
        };
        seen.remove(&(id, name.to_owned()));
        found
    }

    /// A name that is not an item, but occurs in the file, is taken as generated by a macro there.
    fn made_by_a_macro(&self, module: usize, name: &str) -> Option<Target<'a>> {
        let file = self.get(module)?.file;
        self.says(file, name).then_some(Target::Item(file))
    }
}

fn is_root(path: &str) -> bool {
    let in_bin = path.strip_prefix("bin/").map(|rest| rest.split_once('/'));
    match in_bin {
        Some(None) => true,
        Some(Some((_, rest))) => rest == "main.rs",
        None => path == "lib.rs" || path == "main.rs",
    }
}

fn until_semicolon(tokens: &[Token<'_>]) -> usize {
    let end = tokens.iter().position(|token| *token == Token::Sign(';'));
    end.unwrap_or(tokens.len())
}

/// The leaves of a tree of imports, each with its path and its name in the module.
fn leaves_of(
    tree: &[Token<'_>],
    prefix: &mut Vec<String>,
    leaves: &mut Vec<(Vec<String>, String)>,
) {
    let length = prefix.len();
    let mut at = 0;
    while let Some(token) = tree.get(at) {
        match token {
            Token::Word("as") => {
                if let (Some(Token::Word(alias)), Some(leaf)) =
                    (tree.get(at + 1), leaves.last_mut())
                {
                    (*alias).clone_into(&mut leaf.1);
                }
                at += 2;
                continue;
            }
            Token::Word(name) => {
                let is_leaf = tree.get(at + 1) != Some(&Token::Path);
                match (is_leaf, *name) {
                    (true, "self") if !prefix.is_empty() => {
                        let alias = prefix.last().cloned().unwrap_or_default();
                        leaves.push((prefix.clone(), alias));
                    }
                    (true, name) => {
                        let mut path = prefix.clone();
                        path.push(name.to_owned());
                        leaves.push((path, name.to_owned()));
                    }
                    (false, name) => prefix.push(name.to_owned()),
                }
            }
            Token::Sign('*') => leaves.push((prefix.clone(), "*".to_owned())),
            Token::Sign('{') => {
                let here = tree.get(at..).unwrap_or_default();
                let end = group(here);
                leaves_of(here.get(1..end - 1).unwrap_or_default(), prefix, leaves);
                at += end;
                continue;
            }
            Token::Sign(',') => prefix.truncate(length),
            _ => {}
        }
        at += 1;
    }
    prefix.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_resolved_through_reexports() {
        let files = [
            File {
                path: "lib.rs",
                text: "mod a; mod b { pub(crate) use crate::a::*; } use other::Thing;",
            },
            File {
                path: "a/mod.rs",
                text: "mod c; pub use c::{Deep as Renamed, self}; make!(Made);",
            },
            File {
                path: "a/c.rs",
                text: "pub struct Deep; pub fn f() {}",
            },
        ];
        let modules = Modules::of(&files);
        let root = modules.roots[0];
        let resolve = |path: &str| {
            let path: Vec<_> = path.split("::").map(str::to_owned).collect();
            modules.resolve(root, &path)
        };
        assert_eq!(resolve("crate::a::Renamed"), Some(Target::Item("a/c.rs")));
        assert_eq!(resolve("b::Renamed::new"), Some(Target::Item("a/c.rs")));
        assert_eq!(resolve("self::b::c::f"), Some(Target::Item("a/c.rs")));
        assert_eq!(resolve("a::Made"), Some(Target::Item("a/mod.rs")));
        assert_eq!(resolve("a::Nothing"), None);
        assert_eq!(resolve("crate::Thing"), None);
        assert!(matches!(resolve("crate::b"), Some(Target::Module(_))));
    }
}
