//! Compiler from the tree of a pattern to instructions.

use crate::full::pattern::{
    class::Class,
    syntax::{Assertion, Tree},
};

/// The maximum number of instructions of a pattern: each step over a text may visit all of them.
const MAX_INSTRUCTIONS: usize = 20_000;
/// The maximum number of emitted parts of a pattern, with repetitions: empty parts produce no instruction, but
/// emitting them still takes time.
const MAX_PARTS: usize = 8 * MAX_INSTRUCTIONS;

const MULTIPLY: &str = "it is too large: nested repetitions multiply";

#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) classes: Vec<Class>,
    /// The number of emitted parts, with repetitions.
    pub(crate) parts: usize,
}

/// An instruction of a program. After an instruction without an explicit target, the next one follows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instruction {
    /// Consumes a character of this class.
    Class(usize),
    Assert(Assertion),
    /// Continues at `end` if the instructions from the next one on match here or, with `is_negated`, do not match.
    Look {
        is_behind: bool,
        is_negated: bool,
        end: usize,
    },
    /// Continues at both targets.
    Split(usize, usize),
    Jump(usize),
    Match,
}

pub(crate) fn compile(tree: &Tree, classes: Vec<Class>) -> Result<Program, String> {
    let mut compiler = Compiler(Program {
        classes,
        ..Program::default()
    });
    compiler.emit(tree, false)?;
    compiler.push(Instruction::Match)?;
    Ok(compiler.0)
}

struct Compiler(Program);

impl Compiler {
    fn next(&self) -> usize {
        self.0.instructions.len()
    }

    fn push(&mut self, instruction: Instruction) -> Result<usize, String> {
        let at = self.next();
        if at >= MAX_INSTRUCTIONS {
            return Err(MULTIPLY.to_owned());
        }
        self.0.instructions.push(instruction);
        Ok(at)
    }

    fn set(&mut self, at: usize, instruction: Instruction) {
        if let Some(slot) = self.0.instructions.get_mut(at) {
            *slot = instruction;
        }
    }

    /// Emits a part. The parts of a look-behind are emitted in reverse order.
    fn emit(&mut self, tree: &Tree, is_backwards: bool) -> Result<(), String> {
        self.0.parts += 1;
        if self.0.parts > MAX_PARTS {
            return Err(MULTIPLY.to_owned());
        }
        match tree {
            Tree::Class(index) => {
                self.push(Instruction::Class(*index))?;
            }
            Tree::Sequence(terms) if is_backwards => {
                terms
                    .iter()
                    .rev()
                    .try_for_each(|term| self.emit(term, true))?;
            }
            Tree::Sequence(terms) => terms.iter().try_for_each(|term| self.emit(term, false))?,
            Tree::Either(all) => self.either(all, is_backwards)?,
            Tree::Repeat { what, least, most } => {
                self.repeat(what, *least, *most, is_backwards)?;
            }
            Tree::Assert(assertion) => {
                self.push(Instruction::Assert(*assertion))?;
            }
            Tree::Look {
                what,
                is_behind,
                is_negated,
            } => {
                let at = self.push(Instruction::Match)?;
                self.emit(what, *is_behind)?;
                self.push(Instruction::Match)?;
                let look = Instruction::Look {
                    is_behind: *is_behind,
                    is_negated: *is_negated,
                    end: self.next(),
                };
                self.set(at, look);
            }
        }
        Ok(())
    }

    fn either(&mut self, all: &[Tree], is_backwards: bool) -> Result<(), String> {
        let mut ends = Vec::new();
        for (index, tree) in all.iter().enumerate() {
            if index + 1 == all.len() {
                self.emit(tree, is_backwards)?;
                break;
            }
            let split = self.push(Instruction::Match)?;
            self.emit(tree, is_backwards)?;
            ends.push(self.push(Instruction::Match)?);
            self.set(split, Instruction::Split(split + 1, self.next()));
        }
        for end in ends {
            self.set(end, Instruction::Jump(self.next()));
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        what: &Tree,
        least: u32,
        most: Option<u32>,
        is_backwards: bool,
    ) -> Result<(), String> {
        for _ in 0..least {
            let before = self.next();
            self.emit(what, is_backwards)?;
            if self.next() == before {
                // Nothing, for any number of repetitions.
                return Ok(());
            }
        }
        let Some(most) = most else {
            let split = self.push(Instruction::Match)?;
            self.emit(what, is_backwards)?;
            self.push(Instruction::Jump(split))?;
            self.set(split, Instruction::Split(split + 1, self.next()));
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in least..most {
            splits.push(self.push(Instruction::Match)?);
            self.emit(what, is_backwards)?;
        }
        for split in splits {
            self.set(split, Instruction::Split(split + 1, self.next()));
        }
        Ok(())
    }
}
