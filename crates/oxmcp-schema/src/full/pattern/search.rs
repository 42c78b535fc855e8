//! Search: execution of a program on a text, character by character, in all possible states at once.

use crate::full::pattern::{
    class::{Class, Set},
    program::{self, Instruction, Program},
    syntax::{self, Assertion},
};

/// The maximum length of a pattern in bytes. Published schemas have some hundred bytes at most; the time to match grows
/// with the length.
const MAX_LENGTH: usize = 16 << 10;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern(Program);

impl Pattern {
    /// # Errors
    /// If the pattern is invalid or too large.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_LENGTH {
            return Err(format!("it is longer than {MAX_LENGTH} bytes"));
        }
        let (tree, classes) = syntax::parse(pattern)?;
        program::compile(&tree, classes).map(Self)
    }

    /// The approximate memory of the pattern in bytes, with an allowance for the time to compile it.
    pub(crate) fn size(&self) -> usize {
        let Program {
            instructions,
            parts,
            ..
        } = &self.0;
        instructions.len() * size_of::<Instruction>() + parts
    }

    /// Whether the pattern matches anywhere in the text. `None` if the search takes more than `steps`; the steps that
    /// it takes are subtracted.
    pub(crate) fn matches(&self, text: &str, steps: &mut usize) -> Option<bool> {
        search(&self.0, text, steps)
    }
}

fn search(program: &Program, text: &str, steps: &mut usize) -> Option<bool> {
    let search = Search { program, text };
    search.run(0, 0, Direction::Onwards { anywhere: true }, steps)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// To the right; if `anywhere` is set, the match may begin at any position.
    Onwards {
        anywhere: bool,
    },
    Backwards,
}

struct Search<'a> {
    program: &'a Program,
    text: &'a str,
}

/// The instructions that wait for the next character, without duplicates.
struct Threads {
    waiting: Vec<usize>,
    /// Whether each instruction was reached at this position.
    reached: Vec<bool>,
    touched: Vec<usize>,
}

impl Threads {
    fn new(size: usize) -> Self {
        Self {
            waiting: Vec::new(),
            reached: vec![false; size],
            touched: Vec::new(),
        }
    }

    /// Marks an instruction as reached. Returns `true` the first time.
    fn reach(&mut self, at: usize) -> bool {
        match self.reached.get_mut(at) {
            Some(reached) if !*reached => {
                *reached = true;
                self.touched.push(at);
                true
            }
            _ => false,
        }
    }

    fn clear(&mut self) {
        self.waiting.clear();
        for at in self.touched.drain(..) {
            if let Some(reached) = self.reached.get_mut(at) {
                *reached = false;
            }
        }
    }
}

impl Search<'_> {
    /// Runs the program from one of its instructions, at a position in the text.
    fn run(
        &self,
        start: usize,
        place: usize,
        direction: Direction,
        steps: &mut usize,
    ) -> Option<bool> {
        let size = self.program.instructions.len();
        *steps = steps.checked_sub(size / 16)?;
        let (mut now, mut then) = (Threads::new(size), Threads::new(size));
        let mut place = place;
        if self.follow(start, place, &mut now, steps)? {
            return Some(true);
        }
        loop {
            let (before, after) = self.text.split_at_checked(place)?;
            let c = match direction {
                Direction::Onwards { .. } => after.chars().next(),
                Direction::Backwards => before.chars().next_back(),
            };
            let Some(c) = c else {
                return Some(false);
            };
            place = match direction {
                Direction::Onwards { .. } => place + c.len_utf8(),
                Direction::Backwards => place - c.len_utf8(),
            };
            let anywhere = direction == Direction::Onwards { anywhere: true };
            if now.waiting.is_empty() && !anywhere {
                return Some(false);
            }
            *steps = steps.checked_sub(1)?;
            for at in &now.waiting {
                let Some(class) = self.class(*at) else {
                    continue;
                };
                *steps = steps.checked_sub(class.steps())?;
                if class.contains(c) && self.follow(*at + 1, place, &mut then, steps)? {
                    return Some(true);
                }
            }
            if anywhere && self.follow(start, place, &mut then, steps)? {
                return Some(true);
            }
            now.clear();
            std::mem::swap(&mut now, &mut then);
        }
    }

    fn class(&self, at: usize) -> Option<&Class> {
        match self.program.instructions.get(at) {
            Some(Instruction::Class(index)) => self.program.classes.get(*index),
            _ => None,
        }
    }

    /// Follows all paths from an instruction up to the next character. Returns `true` if one of them is a match.
    fn follow(
        &self,
        start: usize,
        place: usize,
        threads: &mut Threads,
        steps: &mut usize,
    ) -> Option<bool> {
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            if !threads.reach(at) {
                continue;
            }
            *steps = steps.checked_sub(1)?;
            match self.program.instructions.get(at)? {
                Instruction::Class(_) => threads.waiting.push(at),
                Instruction::Assert(assertion) => {
                    if self.holds(*assertion, place) {
                        open.push(at + 1);
                    }
                }
                Instruction::Look {
                    is_behind,
                    is_negated,
                    end,
                } => {
                    let direction = if *is_behind {
                        Direction::Backwards
                    } else {
                        Direction::Onwards { anywhere: false }
                    };
                    if self.run(at + 1, place, direction, steps)? != *is_negated {
                        open.push(*end);
                    }
                }
                Instruction::Split(one, other) => open.extend([*other, *one]),
                Instruction::Jump(to) => open.push(*to),
                Instruction::Match => return Some(true),
            }
        }
        Some(false)
    }

    fn holds(&self, assertion: Assertion, place: usize) -> bool {
        let Some((before, after)) = self.text.split_at_checked(place) else {
            return false;
        };
        let (before, after) = (before.chars().next_back(), after.chars().next());
        let is = |set: Set, c: Option<char>| c.is_some_and(|c| set.contains(c));
        let is_boundary = is(Set::Word, before) != is(Set::Word, after);
        match assertion {
            Assertion::Start => before.is_none(),
            Assertion::End => after.is_none(),
            Assertion::LineStart => before.is_none() || is(Set::LineEnd, before),
            Assertion::LineEnd => after.is_none() || is(Set::LineEnd, after),
            Assertion::Boundary => is_boundary,
            Assertion::NoBoundary => !is_boundary,
        }
    }
}
