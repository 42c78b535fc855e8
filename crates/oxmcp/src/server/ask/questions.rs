use super::question::{Answered, Put, Question};
use crate::Result;

/// Questions that can be asked in one round: a [`Question`], a tuple of up to eight, or a `Vec` of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be asked",
    label = "neither a `Question` nor a tuple or `Vec` of them",
    note = "make questions with `Question::form`, `Question::url`, `Question::sample` and `Question::roots`"
)]
pub trait Questions: Parts {}

impl<T: Parts> Questions for T {}

/// What asking does with questions. Nobody else can name it, so nobody else can implement [`Questions`].
#[expect(unnameable_types, reason = "that seals the trait above")]
pub trait Parts {
    /// What the answers are.
    type Answers;

    /// Takes out what is put to the client, in order.
    #[doc(hidden)]
    fn put(self, questions: &mut Vec<Put>) -> Reader<Self::Answers>;
}

/// Reads as many answers as there were questions, from the front.
pub(super) type Reader<T> =
    Box<dyn FnOnce(&mut std::slice::Iter<'_, Answered>) -> Result<T> + Send>;

impl<T: 'static> Parts for Question<T> {
    type Answers = T;

    fn put(self, questions: &mut Vec<Put>) -> Reader<T> {
        questions.push(self.put);
        let read = self.read;
        Box::new(move |answers| {
            let answer = answers.next().ok_or_else(lost)?;
            read(answer)
        })
    }
}

impl<T: Parts> Parts for Vec<T>
where
    T::Answers: 'static,
{
    type Answers = Vec<T::Answers>;

    fn put(self, questions: &mut Vec<Put>) -> Reader<Vec<T::Answers>> {
        let readers: Vec<_> = self.into_iter().map(|it| it.put(questions)).collect();
        Box::new(move |answers| readers.into_iter().map(|read| read(answers)).collect())
    }
}

macro_rules! tuples {
    ($( ($($name:ident)+) )+) => {$(
        impl<$($name: Parts),+> Parts for ($($name,)+)
        where
            $($name::Answers: 'static,)+
        {
            type Answers = ($($name::Answers,)+);

            #[expect(non_snake_case, reason = "the values are named like their types")]
            fn put(self, questions: &mut Vec<Put>) -> Reader<Self::Answers> {
                let ($($name,)+) = self;
                $(let $name = $name.put(questions);)+
                Box::new(move |answers| Ok(($($name(answers)?,)+)))
            }
        }
    )+};
}

tuples! {
    (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H)
}

/// There is an answer to each question, or none at all.
fn lost() -> crate::Error {
    crate::Error::internal("an answer was lost")
}
