//! The contenders of one comparison, taking turns.

use std::time::{Duration, Instant};

const ROUNDS: usize = 15;

/// Long compared with the clock's own cost, short compared with other activity on the machine.
const TURN: Duration = Duration::from_millis(20);

/// One contender: a name without spaces, and one pass over the work.
pub(crate) struct Contender<'a> {
    pub(crate) name: &'static str,
    pub(crate) pass: Box<dyn FnMut() + 'a>,
}

impl<'a> Contender<'a> {
    pub(crate) fn new(name: &'static str, pass: impl FnMut() + 'a) -> Self {
        Self {
            name,
            pass: Box::new(pass),
        }
    }
}

/// Lets the contenders take turns and prints a line for each. A pass is `steps` checksums or
/// records; the others are compared with the first contender.
pub(crate) fn take_turns(verb: &str, size: &str, steps: usize, contenders: &mut [Contender<'_>]) {
    let mut rounds = vec![Vec::with_capacity(ROUNDS); contenders.len()];
    // The first round warms up caches and branch predictors.
    for round in 0..=ROUNDS {
        for (contender, times) in contenders.iter_mut().zip(&mut rounds) {
            let time = turn(contender, steps);
            if round > 0 {
                times.push(time);
            }
        }
    }
    for (contender, times) in contenders.iter().zip(&rounds) {
        let ratios = times.iter().zip(&rounds[0]).map(|(time, first)| time / first).collect();
        let [low, median, high] = quartiles(times.clone());
        let [ratio_low, ratio, ratio_high] = quartiles(ratios);
        println!(
            "{verb}\t{size}\t{}\t{median:.2}\t{low:.2}\t{high:.2}\t{ratio:.3}\t{ratio_low:.3}\t{ratio_high:.3}",
            contender.name
        );
    }
}

/// Nanoseconds per step.
fn turn(contender: &mut Contender<'_>, steps: usize) -> f64 {
    let start = Instant::now();
    let mut passes = 0_u32;
    while start.elapsed() < TURN {
        (contender.pass)();
        passes += 1;
    }
    start.elapsed().as_secs_f64() * 1e9 / (f64::from(passes) * steps as f64)
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}
