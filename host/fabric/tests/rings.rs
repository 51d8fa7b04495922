//! Whether a member is rung by those who connect to its segments and disconnect from them.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use beeline_fabric::*;
use world::*;

#[test]
fn member_that_polls_is_not_rung_and_finds_out_by_itself() {
    let mut world = World::of(&NODES[..2]);
    let local = local_of(world.now(0, create(7, 64)).unwrap());
    world.now(0, Call::Prepare(local, adapter(0))).unwrap();
    world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
    world.processes[0].member.tell_segment(local);
    for polls in [false, true, false] {
        world.processes[0].member.set_polling(polls);
        let told_after = |world: &mut World, event| {
            assert_eq!(std::mem::take(&mut world.rings).len(), usize::from(!polls), "{event:?}");
            world.look(0);
            assert_eq!(std::mem::take(&mut world.processes[0].told), [Told::OfLocal(local, event)]);
        };
        let remote = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
        told_after(&mut world, LocalEvent::Connect(NODES[1]));
        world.now(1, Call::Disconnect(remote)).unwrap();
        told_after(&mut world, LocalEvent::Disconnect(NODES[1]));
    }
}
