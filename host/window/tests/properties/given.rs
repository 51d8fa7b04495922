//! What a receiver gives, one by one or in bulk: two types with the same methods.

use beeline_contract_memory::{CreditSink, LoadPort};
use beeline_window::{ArrivalTest, Message, MessageRef};

/// The methods of a received message.
pub trait Given {
    fn len(&self) -> usize;
    fn word(&self, index: usize) -> u64;
    fn copy_out(&mut self, out: &mut [u8]) -> usize;
    fn for_each_word(&self, each: impl FnMut(u64));
    fn fold_words<T>(&self, start: T, fold: impl FnMut(T, u64) -> T) -> T;
}

macro_rules! given {
    ($($message:ident),*) => { $(
        impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Given for $message<'_, L, S, A> {
            fn len(&self) -> usize {
                $message::len(self)
            }

            fn word(&self, index: usize) -> u64 {
                $message::word(self, index)
            }

            fn copy_out(&mut self, out: &mut [u8]) -> usize {
                $message::copy_out(self, out)
            }

            fn for_each_word(&self, each: impl FnMut(u64)) {
                $message::for_each_word(self, each)
            }

            fn fold_words<T>(&self, start: T, fold: impl FnMut(T, u64) -> T) -> T {
                $message::fold_words(self, start, fold)
            }
        }
    )* };
}

given! { Message, MessageRef }
