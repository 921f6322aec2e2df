//! Explores all sequences of actions up to a certain depth, starting with the short ones.
//!
//! A `LogFile` cannot be copied, so a state is stored as the actions that lead to it, and is
//! re-created from them. Of several equal states, only one is explored further.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::world::{Action, Rule, Setup, Violation, World};

/// The results of one or several explorations.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The number of different states.
    pub(crate) states: usize,
    /// The number of actions that were performed to reach the states.
    pub(crate) steps: usize,
    /// For each setup, the number of its states and the time that the exploration took.
    pub(crate) setups: Vec<String>,
    /// For each broken rule, the shortest way to break it in each setup, sorted by length.
    pub(crate) broken: BTreeMap<Rule, Vec<Counterexample>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Counterexample {
    pub(crate) depth: usize,
    /// The number of states of the setup that were known when this was found, and the time until
    /// then.
    pub(crate) states: usize,
    pub(crate) time: Duration,
    pub(crate) text: String,
}

impl Outcome {
    fn add(&mut self, other: Outcome) {
        self.states += other.states;
        self.steps += other.steps;
        self.setups.extend(other.setups);
        for (rule, examples) in other.broken {
            let all = self.broken.entry(rule).or_default();
            all.extend(examples);
            all.sort_by_key(|example| example.depth);
        }
    }
}

/// Explores each setup on all processors.
pub(crate) fn explore_all(setups: &[Setup], depth: usize) -> Outcome {
    let next = AtomicUsize::new(0);
    let outcomes: Vec<_> = setups.iter().map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&setup) = setups.get(index) else { break };
                    outcomes[index].get_or_init(|| explore(setup, depth.saturating_sub(setup.levels_less)));
                }
            });
        }
    });
    let mut all = Outcome::default();
    let outcomes = outcomes.into_iter().filter_map(OnceLock::into_inner);
    outcomes.for_each(|outcome| all.add(outcome));
    all
}

fn explore(setup: Setup, depth: usize) -> Outcome {
    let started = Instant::now();
    let mut outcome = Outcome::default();
    let mut known = HashSet::from([World::new(setup).fingerprint()]);
    let mut frontier = vec![Vec::new()];
    for _ in 0..depth {
        let mut next = Vec::new();
        for path in &frontier {
            let mut actions = replay(setup, path).actions();
            actions.reverse();
            while let Some(action) = actions.pop() {
                let mut world = replay(setup, path);
                outcome.steps += 1;
                let done = world.act(action);
                actions.extend(world.faulty(action));
                let done = done.and_then(|()| {
                    let is_new = known.insert(world.fingerprint());
                    let check = if is_new { world.check() } else { Ok(()) };
                    check.map(|()| is_new)
                });
                let path = || path.iter().copied().chain([action]).collect::<Vec<_>>();
                match done {
                    Ok(true) => next.push(path()),
                    Ok(false) => {}
                    Err(violation) => {
                        let path = path();
                        let examples = outcome.broken.entry(violation.rule).or_default();
                        if examples.is_empty() {
                            examples.push(Counterexample {
                                depth: path.len(),
                                states: known.len(),
                                time: started.elapsed(),
                                text: describe(setup, &path, &violation),
                            });
                        }
                    }
                }
            }
        }
        frontier = next;
    }
    outcome.states = known.len();
    let time = started.elapsed();
    outcome.setups = vec![format!(
        "{} states to a depth of {depth}, {time:.1?}: {setup}",
        known.len()
    )];
    outcome
}

/// Returns the state to which these actions lead.
fn replay(setup: Setup, path: &[Action]) -> World {
    let mut world = World::new(setup);
    for &action in path {
        let done = world.act(action);
        assert!(done.is_ok(), "{action}: it went well before");
    }
    world
}

fn describe(setup: Setup, path: &[Action], violation: &Violation) -> String {
    let mut text = format!("{}\n  {setup}\n", violation.what);
    let mut world = World::new(setup);
    for (index, &action) in path.iter().enumerate() {
        let _ = world.act(action);
        let outcome = world.outcome();
        let arrow = if outcome.is_empty() { "" } else { " -> " };
        let _ = writeln!(text, "  {}. {action}{arrow}{outcome}", index + 1);
    }
    text
}
