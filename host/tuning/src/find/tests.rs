use super::*;
use crate::kept::tests::{entry, kept};
use crate::tuning::Prefetch;

fn measured(line_ns: f64, credit_parts: u32) -> Measured {
    let receive = ReceiveTuning { credit_parts, ..Tuning::default().receive };
    Measured { tuning: Tuning { receive, ..Tuning::default() }, line_ns, timings: Vec::new() }
}

fn never() -> Result<Measured, NotTimed> {
    panic!("nothing is timed")
}

#[test]
fn tuning_is_timed_once_and_kept_while_the_line_takes_that_long() {
    let folder = tempfile::tempdir().unwrap();
    let kept = kept(folder.path());
    let found = Found::from(Some(&kept), || Ok(100.0), || Ok(measured(102.0, 16)));
    assert_eq!((found.basis, found.tuning.receive.credit_parts), (Basis::Timed, 16));
    for line_ns in [70.0, 100.0, 152.0] {
        let found = Found::from(Some(&kept), || Ok(line_ns), never);
        assert_eq!((found.basis, found.tuning.receive.credit_parts), (Basis::Kept, 16));
        assert_eq!((found.line_ns, found.line_then_ns), (Some(line_ns), Some(102.0)));
        assert_eq!(found.found, Some(kept.now()));
    }
}

#[test]
fn another_is_timed_when_the_line_differs_by_half_and_the_first_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let kept = kept(folder.path());
    Found::from(Some(&kept), || Ok(100.0), || Ok(measured(100.0, 16)));
    let far = Found::from(Some(&kept), || Ok(150.0), || Ok(measured(150.0, 4)));
    assert_eq!((far.basis, far.tuning.receive.credit_parts), (Basis::Timed, 4));
    assert_eq!(last(&kept).map(|(_, tuning)| tuning.receive.credit_parts), Some(4));
    let near = Found::from(Some(&kept), || Ok(99.0), never);
    assert_eq!((near.basis, near.tuning.receive.credit_parts), (Basis::Kept, 16));
    assert_eq!(last(&kept).map(|(_, tuning)| tuning.receive.credit_parts), Some(16), "the one in use last");
}

#[test]
fn tuning_is_timed_anew_when_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let kept = kept(folder.path());
    Found::from(Some(&kept), || Ok(100.0), || Ok(measured(100.0, 16)));
    let found = Found::timed(Some(&kept), None, || Ok(measured(101.0, 32)));
    assert_eq!((found.basis, found.line_ns), (Basis::Timed, Some(101.0)));
    assert_eq!(kept.entries().len(), 1);
}

#[test]
fn default_stands_where_nothing_can_be_timed_and_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let kept = kept(folder.path());
    for kept in [None, Some(&kept)] {
        let found = Found::from(kept, || Err(NotTimed::OneCore), never);
        assert_eq!((found.tuning, found.found), (Tuning::default(), None));
        assert_eq!(found.basis, Basis::Untimed(NotTimed::OneCore));
        let found = Found::from(kept, || Ok(100.0), || Err(NotTimed::Taken));
        assert_eq!((found.tuning, found.line_ns), (Tuning::default(), Some(100.0)));
    }
    assert_eq!(kept.entries(), [], "a default is not kept");
    Found::from(Some(&kept), || Ok(100.0), || Ok(measured(100.0, 16)));
    let found = Found::from(Some(&kept), || Err(NotTimed::Taken), never);
    assert_eq!((found.tuning.receive.credit_parts, found.line_ns), (16, None), "what windows go by");
}

#[test]
fn environment_stands_before_what_was_timed_and_that_before_the_default() {
    let timed = Tuning { stream: StoreKernel::Nt8, ..measured(100.0, 16).tuning };
    let none = Overrides::default();
    let say = |text: &str| text.parse::<Overrides>().unwrap();
    let (cached, other) = (Some(StoreKernel::Cached), Some(StoreKernel::Nt8));
    assert_eq!(received(none, None, cached), ReceiveTuning::for_sender(cached));
    assert_eq!(received(none, Some(timed), other), timed.receive);
    assert_eq!(received(none, Some(timed), cached), ReceiveTuning::for_sender(cached), "of another kernel");
    assert_eq!(received(none, Some(timed), None), ReceiveTuning::for_sender(None), "of one that is unknown");
    assert_eq!(received(say("default"), Some(timed), other), ReceiveTuning::for_sender(other));
    let expected = ReceiveTuning { prefetch: Prefetch::None, ..timed.receive };
    assert_eq!(received(say("prefetch=none"), Some(timed), other), expected);
}

type Timed = Result<MeasuredKernel, NotTimed>;

fn chosen(kernel: StoreKernel, line_ns: f64) -> impl FnOnce(Option<[usize; 2]>, Traffic) -> Timed {
    move |_, _| Ok(MeasuredKernel { kernel, line_ns, timings: Vec::new() })
}

fn no_choice(_: Option<[usize; 2]>, _: Traffic) -> Timed {
    panic!("nothing is timed")
}

#[test]
fn kernel_alone_is_kept_for_its_traffic_and_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let kept = kept(folder.path());
    let other = if cfg!(target_arch = "aarch64") { StoreKernel::Stnp } else { StoreKernel::Nt8 };
    let cached = StoreKernel::Cached;
    assert_eq!(kernel_from(Some(&kept), Traffic::Stream, Ok(100.0), chosen(other, 100.0)), other);
    assert_eq!(kernel_from(Some(&kept), Traffic::Stream, Ok(120.0), no_choice), other);
    assert_eq!(kernel_from(Some(&kept), Traffic::Stream, Ok(600.0), chosen(cached, 600.0)), cached);
    assert_eq!(kernel_from(Some(&kept), Traffic::Latency, Ok(100.0), chosen(cached, 100.0)), cached);
    let entries = kept.entries();
    assert_eq!((entries.len(), entries[0].latency, entries[0].stream), (2, Some(cached), Some(other)));
    assert_eq!(last(&kept), None, "no whole tuning was timed");
    // A whole tuning for that line takes its place.
    let found = Found::from(Some(&kept), || Ok(110.0), || Ok(measured(110.0, 16)));
    assert_eq!(found.basis, Basis::Timed);
    assert_eq!(kernel_from(Some(&kept), Traffic::Stream, Ok(100.0), no_choice), cached);
}

#[test]
fn kernel_that_cannot_be_timed_is_the_default_and_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let kept = kept(folder.path());
    for why in [NotTimed::OneCore, NotTimed::Shared { line_ns: 9e6 }] {
        let line = Err(why);
        assert_eq!(kernel_from(Some(&kept), Traffic::Stream, line, |_, _| Err(why)), StoreKernel::Cached);
    }
    assert_eq!(kept.entries(), []);
    kept.keep(entry(&kept, 100.0));
    let cached = chosen(StoreKernel::Cached, 100.0);
    assert_eq!(kernel_from(None, Traffic::Latency, Ok(100.0), cached), StoreKernel::Cached);
}
