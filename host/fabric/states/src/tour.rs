//! Traces of the model, replayed on something that is to behave like it.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::scope::Scope;
use crate::state::State;
use crate::step::{Answer, Call, Event, Of, Step};

/// What is to behave like the model.
pub trait Subject {
    /// Makes a call, and says what came of it.
    ///
    /// # Errors
    /// The call cannot be made where the model says that it can.
    fn perform(&mut self, who: usize, call: Call) -> Result<Answer, String>;

    /// What a member's program has been told since, of that for which a call waits or which has a callback.
    fn told(&mut self, who: usize) -> Option<(Of, Event)>;
}

/// All states of a scope, the first one first, and the steps from each.
pub struct Graph {
    states: Vec<State>,
    steps: Vec<Vec<(Step, usize)>>,
    /// The step by which each was found first, and from where.
    found_by: Vec<Option<(usize, Step)>>,
}

/// What a tour has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage {
    /// Of the model.
    pub states: usize,
    pub traces: usize,
    /// Calls, and what happens to members without one.
    pub calls: usize,
    /// Steps of the model that were seen, of how many.
    pub steps: usize,
    pub all_steps: usize,
}

impl Graph {
    /// Finds every state of a scope.
    pub fn of(scope: &Scope) -> Self {
        let first = scope.first();
        let mut index = HashMap::from([(first.clone(), 0)]);
        let mut graph = Graph { states: vec![first], steps: Vec::new(), found_by: vec![None] };
        let mut at = 0;
        while at < graph.states.len() {
            let mut steps = Vec::new();
            for (step, state) in scope.steps(&graph.states[at]) {
                let next = *index.entry(state).or_insert_with_key(|state| {
                    graph.states.push(state.clone());
                    graph.found_by.push(Some((at, step)));
                    graph.states.len() - 1
                });
                steps.push((step, next));
            }
            graph.steps.push(steps);
            at += 1;
        }
        graph
    }

    /// The shortest way to a state.
    fn path(&self, mut to: usize) -> Vec<(Step, usize)> {
        let mut path = Vec::new();
        while let Some((from, step)) = self.found_by[to] {
            path.push((step, to));
            to = from;
        }
        path.reverse();
        path
    }

    /// Makes every call in every state that a new subject can be brought to. Where more than one thing may come of a call, the subject
    /// chooses.
    ///
    /// # Errors
    /// The calls and their answers up to one that the model does not have.
    pub fn tour<S: Subject>(&self, mut begin: impl FnMut() -> S) -> Result<Coverage, String> {
        let mut tour = Tour::of(self);
        for to in 0..self.states.len() {
            while tour.next_call(to).is_some() {
                let mut subject = begin();
                tour.trace(&mut subject, to)?;
            }
        }
        Ok(tour.coverage())
    }

    /// As [`Graph::tour`], each call with each answer to it once, wherever that is.
    ///
    /// # Errors
    /// See there.
    pub fn sample<S: Subject>(
        &self,
        kind: impl Fn(&State, &Step) -> String,
        mut begin: impl FnMut() -> S,
    ) -> Result<Coverage, String> {
        let mut tour = Tour::of(self);
        let mut seen = std::collections::HashSet::new();
        for (from, steps) in self.steps.iter().enumerate() {
            for (step, _) in steps {
                if matches!(step.call, Call::Told(_)) || !seen.insert(kind(&self.states[from], step)) {
                    continue;
                }
                let mut subject = begin();
                tour.coverage.traces += 1;
                if let Some(at) = tour.walk(&mut subject, from)? {
                    tour.perform(&mut subject, at, (step.who, step.call))?;
                }
            }
        }
        Ok(tour.coverage())
    }
}

struct Tour<'a> {
    graph: &'a Graph,
    /// Of each step, whether its call has been made.
    is_made: Vec<Vec<bool>>,
    /// Of each step, whether it was what came of the call.
    is_seen: Vec<Vec<bool>>,
    coverage: Coverage,
    said: String,
}

impl<'a> Tour<'a> {
    fn of(graph: &'a Graph) -> Self {
        let none: Vec<Vec<bool>> = graph.steps.iter().map(|steps| vec![false; steps.len()]).collect();
        Tour {
            graph,
            is_made: none.clone(),
            is_seen: none,
            coverage: Coverage::default(),
            said: String::new(),
        }
    }

    /// A call that has not been made in this state.
    fn next_call(&self, at: usize) -> Option<(usize, Call)> {
        let steps = self.graph.steps[at].iter().zip(&self.is_made[at]);
        let mut calls =
            steps.filter(|((step, _), is_made)| !**is_made && !matches!(step.call, Call::Told(_)));
        calls.next().map(|((step, _), _)| (step.who, step.call))
    }

    /// One trace: to a state, and on as long as there is a call that has not been made.
    fn trace(&mut self, subject: &mut impl Subject, to: usize) -> Result<(), String> {
        self.coverage.traces += 1;
        let Some(mut at) = self.walk(subject, to)? else {
            // The subject takes another course that is as good, and does not come here.
            self.is_made[to].fill(true);
            return Ok(());
        };
        while let Some(call) = self.next_call(at) {
            at = self.perform(subject, at, call)?;
        }
        Ok(())
    }

    /// Brings a new subject to a state; nothing if it does something else that it may.
    fn walk(&mut self, subject: &mut impl Subject, to: usize) -> Result<Option<usize>, String> {
        self.said.clear();
        let mut at = 0;
        let mut from = 0;
        for (step, next) in self.graph.path(to) {
            if at == next {
                continue;
            }
            if at != from || matches!(step.call, Call::Told(_)) {
                return Ok(None);
            }
            at = self.perform(subject, at, (step.who, step.call))?;
            from = next;
            if at != next && !self.is_told_from(next, at) {
                return Ok(None);
            }
        }
        Ok((at == to).then_some(at))
    }

    /// Whether nothing but what was told leads from one state to another.
    fn is_told_from(&self, from: usize, to: usize) -> bool {
        let told = self.graph.steps[from].iter().filter(|(step, _)| matches!(step.call, Call::Told(_)));
        told.clone().any(|(_, next)| *next == to)
            || told.clone().any(|(_, next)| self.is_told_from(*next, to))
    }

    fn perform(
        &mut self,
        subject: &mut impl Subject,
        at: usize,
        (who, call): (usize, Call),
    ) -> Result<usize, String> {
        self.coverage.calls += 1;
        for (number, (step, _)) in self.graph.steps[at].iter().enumerate() {
            self.is_made[at][number] |= (step.who, step.call) == (who, call);
        }
        let answer = subject
            .perform(who, call)
            .map_err(|why| self.failed(at, &format!("{call:?} of {who}: {why}")))?;
        let mut at = self.take(at, Step { who, call, answer })?;
        for who in 0..self.graph.states[at].members.len() {
            while let Some((of, event)) = subject.told(who) {
                at = self.take(at, Step { who, call: Call::Told(of), answer: Answer::Event(event) })?;
            }
        }
        let looking = self.graph.states[at].members.iter().position(|member| member.is_looking);
        looking.map_or(Ok(at), |who| Err(self.failed(at, &format!("{who} is not told what it waits for"))))
    }

    fn take(&mut self, at: usize, step: Step) -> Result<usize, String> {
        let _ = writeln!(self.said, "  {}: {:?} -> {:?}", step.who, step.call, step.answer);
        let Some(number) = self.graph.steps[at].iter().position(|(it, _)| *it == step) else {
            return Err(self.failed(at, "the model does not have the last of these"));
        };
        self.is_seen[at][number] = true;
        Ok(self.graph.steps[at][number].1)
    }

    fn failed(&self, at: usize, why: &str) -> String {
        format!("{why}:\n{}in {:#?}", self.said, self.graph.states[at])
    }

    fn coverage(&self) -> Coverage {
        let count = |seen: &Vec<bool>| seen.iter().filter(|is_seen| **is_seen).count();
        let steps = self.is_seen.iter().map(count).sum();
        Coverage {
            states: self.graph.states.len(),
            steps,
            all_steps: self.is_seen.iter().map(Vec::len).sum(),
            ..self.coverage
        }
    }
}
