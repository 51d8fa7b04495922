//! Macros that write methods of [`crate::StorePort`]: by their meaning, or by handing the call to another port.
//!
//! The trait has no default bodies, so that a port which stands in front of another cannot forget a method: what it neither
//! writes nor names here does not compile. A method that is added to the trait needs an arm in both macros.

/// Writes methods of [`crate::StorePort`] by their meaning, one store of a line or a word at a time.
///
/// `composed` stands for the methods that can be made of `store_line`, `hints` for those that tell or are told how to be
/// fast, and each method can be named by itself. `progress` is that of a port that holds nothing back, `wake_receiver` that
/// of one whose receiver does not sleep. Ports write a method themselves where memory or CPU can do better.
#[macro_export]
macro_rules! store_port_default {
    ($($method:ident),+ $(,)?) => {
        $($crate::store_port_default! { @ $method })+
    };
    (@ composed) => {
        $crate::store_port_default! {
            store_lines, store_head_line, store_head_line_unless, store_prefixed_line_unless, store_padded_line,
            run_stores
        }
    };
    (@ hints) => {
        $crate::store_port_default! { has_word, prefetch_lines, prefetch }
    };
    (@ store_lines) => {
        #[inline]
        fn store_lines(&mut self, first_line: u32, bytes: &[u8]) {
            for (line, chunk) in (first_line..).zip(bytes.chunks_exact(64)) {
                let mut words = [0; 8];
                for (word, bytes) in words.iter_mut().zip(chunk.as_chunks::<8>().0) {
                    *word = u64::from_le_bytes(*bytes);
                }
                self.store_line(line, &words);
            }
        }
    };
    (@ store_head_line) => {
        #[inline]
        fn store_head_line(&mut self, line: u32, header: u64, payload: &[u8]) {
            let mut words = [header, 0, 0, 0, 0, 0, 0, 0];
            $crate::fill_words(&mut words[1..], payload);
            self.store_line(line, &words);
        }
    };
    (@ store_head_line_unless) => {
        #[inline(always)]
        fn store_head_line_unless(&mut self, line: u32, header: u64, payload: &[u8], blank: u64) -> bool {
            let found = payload.as_chunks::<8>().0.iter().any(|word| u64::from_le_bytes(*word) == blank);
            if !found {
                self.store_head_line(line, header, payload);
            }
            !found
        }
    };
    (@ store_prefixed_line_unless) => {
        #[inline(always)]
        fn store_prefixed_line_unless(
            &mut self,
            line: u32,
            header: u64,
            prefix: u64,
            payload: &[u8],
            blank: u64,
        ) -> bool {
            let mut words = [header, prefix, 0, 0, 0, 0, 0, 0];
            $crate::fill_words(&mut words[2..], payload);
            let found = words.contains(&blank);
            if !found {
                self.store_line(line, &words);
            }
            !found
        }
    };
    (@ store_padded_line) => {
        #[inline]
        fn store_padded_line(&mut self, line: u32, bytes: &[u8]) {
            let mut words = [0; 8];
            $crate::fill_words(&mut words, bytes);
            self.store_line(line, &words);
        }
    };
    (@ run_stores) => {
        #[inline(always)]
        fn run_stores<T: $crate::StoreTask>(&mut self, task: T) -> T::Output {
            task.run(self)
        }
    };
    (@ has_word) => {
        #[inline]
        fn has_word(&self, payload: &[u8], word: u64) -> bool {
            $crate::has_word(payload, word)
        }
    };
    (@ prefetch_lines) => {
        #[inline]
        fn prefetch_lines(&self) -> u32 {
            0
        }
    };
    (@ prefetch) => {
        #[inline]
        fn prefetch(&mut self, _line: u32) {}
    };
    (@ wake_receiver) => {
        #[inline(always)]
        fn wake_receiver(&mut self) {}
    };
    (@ progress) => {
        #[inline(always)]
        fn progress(&mut self) {}
    };
}

/// Writes methods of [`crate::StorePort`] by calling the same method of the port behind:
/// `forward_store_port! { |this| this.port; lines, stores, hints, fence, wake_receiver, progress }`.
///
/// `stores` stands for every method that stores, `hints` for those that tell or are told how to be fast, and each method can
/// be named by itself. The port may be one of several: `|this| match this { Pattern(port) => port, … }`.
#[macro_export]
macro_rules! forward_store_port {
    (|$this:ident| match $on:ident { $($pattern:pat => $port:expr),+ $(,)? }; $($method:ident),+ $(,)?) => {
        $crate::forward_store_port! { @each [$($pattern => $port),+] $($method)+ }
    };
    (|$this:ident| $port:expr; $($method:ident),+ $(,)?) => {
        $crate::forward_store_port! { @each [$this => $port] $($method)+ }
    };
    (@each $ports:tt) => {};
    (@each $ports:tt stores $($method:ident)*) => {
        $crate::forward_store_port! {
            @each $ports store_line store_word store_lines store_head_line store_head_line_unless
                store_prefixed_line_unless store_padded_line run_stores $($method)*
        }
    };
    (@each $ports:tt hints $($method:ident)*) => {
        $crate::forward_store_port! { @each $ports has_word prefetch_lines prefetch $($method)* }
    };
    (@each $ports:tt $first:ident $($method:ident)*) => {
        $crate::forward_store_port! { @ $first $ports }
        $crate::forward_store_port! { @each $ports $($method)* }
    };
    (@ lines $ports:tt) => {
        $crate::forward_store_port! { @write fn lines(&self) -> u32; $ports }
    };
    (@ store_line $ports:tt) => {
        $crate::forward_store_port! {
            @write fn store_line(&mut self, line: u32, words: &$crate::Line) -> (); $ports
        }
    };
    (@ store_word $ports:tt) => {
        $crate::forward_store_port! {
            @write fn store_word(&mut self, line: u32, word: u32, value: u64) -> (); $ports
        }
    };
    (@ store_lines $ports:tt) => {
        $crate::forward_store_port! {
            @write fn store_lines(&mut self, first_line: u32, bytes: &[u8]) -> (); $ports
        }
    };
    (@ store_head_line $ports:tt) => {
        $crate::forward_store_port! {
            @write fn store_head_line(&mut self, line: u32, header: u64, payload: &[u8]) -> (); $ports
        }
    };
    (@ store_head_line_unless $ports:tt) => {
        $crate::forward_store_port! {
            @write fn store_head_line_unless(&mut self, line: u32, header: u64, payload: &[u8], blank: u64) -> bool;
            $ports
        }
    };
    (@ store_prefixed_line_unless $ports:tt) => {
        $crate::forward_store_port! {
            @write fn store_prefixed_line_unless(
                &mut self, line: u32, header: u64, prefix: u64, payload: &[u8], blank: u64
            ) -> bool;
            $ports
        }
    };
    (@ store_padded_line $ports:tt) => {
        $crate::forward_store_port! {
            @write fn store_padded_line(&mut self, line: u32, bytes: &[u8]) -> (); $ports
        }
    };
    (@ run_stores $ports:tt) => {
        #[inline(always)]
        fn run_stores<T: $crate::StoreTask>(&mut self, task: T) -> T::Output {
            $crate::forward_store_port! { @call self run_stores (task) $ports }
        }
    };
    (@ has_word $ports:tt) => {
        $crate::forward_store_port! { @write fn has_word(&self, payload: &[u8], word: u64) -> bool; $ports }
    };
    (@ prefetch_lines $ports:tt) => {
        $crate::forward_store_port! { @write fn prefetch_lines(&self) -> u32; $ports }
    };
    (@ prefetch $ports:tt) => {
        $crate::forward_store_port! { @write fn prefetch(&mut self, line: u32) -> (); $ports }
    };
    (@ fence $ports:tt) => {
        $crate::forward_store_port! { @write fn fence(&mut self) -> (); $ports }
    };
    (@ wake_receiver $ports:tt) => {
        $crate::forward_store_port! { @write fn wake_receiver(&mut self) -> (); $ports }
    };
    (@ progress $ports:tt) => {
        $crate::forward_store_port! { @write fn progress(&mut self) -> (); $ports }
    };
    (@write fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty; $ports:tt) => {
        #[inline(always)]
        fn $name(&self $(, $argument: $type)*) -> $result {
            $crate::forward_store_port! { @call self $name ($($argument),*) $ports }
        }
    };
    (@write fn $name:ident(&mut self $(, $argument:ident: $type:ty)*) -> $result:ty; $ports:tt) => {
        #[inline(always)]
        fn $name(&mut self $(, $argument: $type)*) -> $result {
            $crate::forward_store_port! { @call self $name ($($argument),*) $ports }
        }
    };
    (@call $this:ident $name:ident $arguments:tt [$($pattern:pat => $port:expr),+]) => {
        match $this {
            $($pattern => $port.$name $arguments,)+
        }
    };
}

/// Writes [`crate::LoadPort::group`] and [`crate::LoadPort::groups`] for ports that work out the place of each line anew.
#[macro_export]
macro_rules! group_line_by_line {
    () => {
        type Group<'p> = $crate::LineByLine<'p, Self>;

        #[inline]
        fn group(&self, first_line: u32) -> $crate::LineByLine<'_, Self> {
            $crate::LineByLine::new(self, first_line)
        }

        type Groups<'p> = $crate::GroupsLineByLine<'p, Self>;

        #[inline]
        fn groups(&mut self, first_line: u32, _groups: u32) -> $crate::GroupsLineByLine<'_, Self> {
            $crate::GroupsLineByLine::new(self, first_line)
        }
    };
}

#[cfg(test)]
mod tests {
    extern crate std;
    use core::cell::RefCell;
    use std::string::String;
    use std::vec::Vec;
    use std::{format, vec};

    use crate::{Line, StorePort, StoreTask};

    /// Writes down what it is called with.
    #[derive(Default)]
    struct Recorder(RefCell<Vec<String>>);

    const TASK: &str = "task";

    /// Says which port it was run on.
    struct TypeName;

    impl StoreTask for TypeName {
        type Output = String;

        fn run<P: StorePort + ?Sized>(self, _port: &mut P) -> String {
            std::any::type_name::<P>().into()
        }
    }

    /// Makes of one list the recorder's methods and a call of each: a method of the trait without a call does not compile.
    macro_rules! recorded {
        ($($kind:ident fn $name:ident($($argument:ident: $type:ty = $value:expr),*) -> $result:ty = $answer:expr;)*) => {
            impl StorePort for Recorder {
                $(recorded! { @$kind fn $name($($argument: $type),*) -> $result = $answer; })*

                fn run_stores<T: StoreTask>(&mut self, task: T) -> T::Output {
                    self.0.borrow_mut().push(TASK.into());
                    task.run(self)
                }
            }

            /// Calls every method once: the answers, and what a recorder that was reached has written down.
            fn call_every_method(port: &mut impl StorePort) -> Vec<String> {
                vec![$(format!("{:?}", port.$name($($value),*)),)* port.run_stores(TypeName)]
            }

            fn answers() -> Vec<String> {
                let reached = std::any::type_name::<Recorder>();
                vec![$({ let answer: $result = $answer; format!("{answer:?}") },)* reached.into()]
            }

            fn records() -> Vec<String> {
                vec![$({
                    $(let $argument: $type = $value;)*
                    format!("{}{:?}", stringify!($name), ($($argument,)*))
                },)* TASK.into()]
            }
        };
        (@reading fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $answer:expr;) => {
            fn $name(&self, $($argument: $type),*) -> $result {
                self.0.borrow_mut().push(format!("{}{:?}", stringify!($name), ($($argument,)*)));
                $answer
            }
        };
        (@storing fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $answer:expr;) => {
            fn $name(&mut self, $($argument: $type),*) -> $result {
                self.0.borrow_mut().push(format!("{}{:?}", stringify!($name), ($($argument,)*)));
                $answer
            }
        };
    }

    recorded! {
        reading fn lines() -> u32 = 16;
        storing fn store_line(line: u32 = 1, words: &Line = &[2, 3, 4, 5, 6, 7, 8, 9]) -> () = ();
        storing fn store_word(line: u32 = 10, word: u32 = 11, value: u64 = 12) -> () = ();
        storing fn store_lines(first_line: u32 = 13, bytes: &[u8] = &[14; 128]) -> () = ();
        storing fn store_head_line(line: u32 = 15, header: u64 = 16, payload: &[u8] = &[17]) -> () = ();
        storing fn store_head_line_unless(
            line: u32 = 18, header: u64 = 19, payload: &[u8] = &[20], blank: u64 = 21
        ) -> bool = true;
        storing fn store_prefixed_line_unless(
            line: u32 = 22, header: u64 = 23, prefix: u64 = 24, payload: &[u8] = &[25], blank: u64 = 26
        ) -> bool = true;
        storing fn store_padded_line(line: u32 = 27, bytes: &[u8] = &[28]) -> () = ();
        reading fn has_word(payload: &[u8] = &[29], word: u64 = 30) -> bool = true;
        reading fn prefetch_lines() -> u32 = 31;
        storing fn prefetch(line: u32 = 32) -> () = ();
        storing fn fence() -> () = ();
        storing fn wake_receiver() -> () = ();
        storing fn progress() -> () = ();
    }

    struct Front<P> {
        port: P,
    }

    impl<P: StorePort> StorePort for Front<P> {
        forward_store_port! { |this| this.port; lines, stores, hints, fence, wake_receiver, progress }
    }

    enum Either<A, B> {
        Left(A),
        Right(B),
    }

    impl<A: StorePort, B: StorePort> StorePort for Either<A, B> {
        forward_store_port! {
            |this| match this { Either::Left(port) => port, Either::Right(port) => port };
            lines, stores, hints, fence, wake_receiver, progress
        }
    }

    #[test]
    fn forwarded_call_reaches_the_same_method_with_the_same_arguments() {
        let mut front = Front { port: Recorder::default() };
        assert_eq!(call_every_method(&mut front), answers());
        assert_eq!(front.port.0.take(), records());
    }

    #[test]
    fn forwarded_call_reaches_the_variant_that_is_there() {
        let mut left = Either::<_, Front<Recorder>>::Left(Recorder::default());
        assert_eq!(call_every_method(&mut left), answers());
        let mut right = Either::<Recorder, _>::Right(Front { port: Recorder::default() });
        assert_eq!(call_every_method(&mut right), answers());
        let (Either::Left(left), Either::Right(right)) = (left, right) else { unreachable!("made just now") };
        assert_eq!((left.0.take(), right.port.0.take()), (records(), records()));
    }
}
