use std::collections::BTreeSet;

use super::*;

fn in_state(state: State) -> Background {
    let background = Background::new();
    locked(&background.desk).state = state;
    background
}

fn take(background: &Background) -> &'static Endpoint {
    background.nominating().take().unwrap()
}

#[test]
fn endpoint_is_used_again_behind_what_the_thread_does_with_its_last_connection() {
    let background = in_state(State::Running);
    let ended = take(&background);
    background.release(ended, 7);
    let next = take(&background);
    assert_ne!(next.index, ended.index, "the thread may have it in its hands");
    // It ends instead of hearing of it.
    background.close_desk();
    assert_eq!(take(&background).index, ended.index);
}

#[test]
fn endpoint_is_used_again_at_once_where_no_thread_has_it() {
    for state in [State::Over, State::NotStarted] {
        let background = in_state(state);
        let ended = take(&background);
        background.release(ended, 7);
        assert_eq!(take(&background).index, ended.index, "{state:?}");
    }
}

#[test]
fn many_that_the_thread_has_not_heard_of_keep_others_with_the_kernel_until_it_has() {
    let background = in_state(State::Running);
    let mut ended = BTreeSet::new();
    while !background.nominating().are_many_unheard() {
        let endpoint = take(&background);
        background.release(endpoint, 7);
        assert!(ended.insert(endpoint.index) && ended.len() < 1000);
    }
    background.close_desk();
    assert!(!background.nominating().are_many_unheard());
    assert_eq!(ended.iter().map(|_| take(&background).index).collect::<BTreeSet<_>>(), ended);
}
