//! A value that a configuration file has the user asked for.

/// A value that VS Code asks the user for: an entry of `inputs`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Input {
    /// The name by which values refer to it: `${input:id}`.
    pub id: String,
    /// The question to the user.
    pub description: String,
    /// Whether the answer is a secret, which must not be shown while it is typed.
    pub is_password: bool,
    /// The suggested answer.
    pub default: Option<String>,
    /// The possible answers, if the user can only choose. Empty otherwise.
    pub options: Vec<String>,
}
