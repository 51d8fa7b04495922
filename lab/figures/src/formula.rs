//! Formulas of `rows/`: arithmetic whose variables are published rows (`r0033`), our figures for rows (`ours_r0033`) and what
//! an entry measures. Everything stands in the unit it is printed in.

use exmex::{Express, FlatEx};

use crate::error::Error;
use crate::published::RowId;

/// A formula that has been read.
#[derive(Clone, Debug)]
pub struct Formula {
    text: String,
    expression: FlatEx<f64>,
}

/// What a variable of a formula stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    Published(RowId),
    /// Our figure for a row.
    Ours(RowId),
    /// Something that the entry measures.
    Measured(String),
}

impl Formula {
    /// Parses an arithmetic expression over rows and measured values.
    ///
    /// # Errors
    /// [`Error::Formula`] with the text and what is wrong with it.
    pub fn read(text: &str) -> Result<Formula, Error> {
        let fail = |problem: String| Error::Formula { formula: text.to_owned(), problem };
        let expression = FlatEx::<f64>::parse(text).map_err(|error| fail(error.to_string()))?;
        Ok(Formula { text: text.to_owned(), expression })
    }

    /// Its variables, in the order in which [`Formula::compute`] asks for them.
    pub fn variables(&self) -> Vec<Variable> {
        self.expression.var_names().iter().map(|name| variable(name)).collect()
    }

    /// Whether it depends on a figure of ours.
    pub fn needs_ours(&self) -> bool {
        self.variables().iter().any(|variable| !matches!(variable, Variable::Published(_)))
    }

    /// Computes it; `value` gives each variable, and its first failure ends the computation.
    pub fn compute<E>(&self, mut value: impl FnMut(&Variable) -> Result<f64, E>) -> Result<f64, E>
    where
        E: From<Error>,
    {
        let values: Vec<f64> = self.variables().iter().map(&mut value).collect::<Result<_, _>>()?;
        let fail = |problem: String| E::from(Error::Formula { formula: self.text.clone(), problem });
        let result = self.expression.eval(&values).map_err(|error| fail(error.to_string()))?;
        if result.is_finite() { Ok(result) } else { Err(fail(format!("the result is {result}"))) }
    }
}

/// Parses the name of a variable.
fn variable(name: &str) -> Variable {
    let is_row = |text: &str| {
        text.strip_prefix('r')
            .is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_digit()))
    };
    match name.strip_prefix("ours_") {
        Some(row) if is_row(row) => Variable::Ours(row.into()),
        _ if is_row(name) => Variable::Published(name.into()),
        _ => Variable::Measured(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_rows_our_figures_and_measurements() {
        let formula = Formula::read("100 * (ours_r0030 - r0029) / dma").unwrap();
        let expected = [
            Variable::Measured("dma".to_owned()),
            Variable::Ours("r0030".into()),
            Variable::Published("r0029".into()),
        ];
        assert_eq!(formula.variables(), expected);
        let value = |variable: &Variable| -> Result<f64, Error> {
            Ok(match variable {
                Variable::Measured(_) => 50.0,
                Variable::Ours(_) => 7.0,
                Variable::Published(_) => 2.0,
            })
        };
        assert_eq!(formula.compute(value).unwrap(), 10.0);
        assert!(formula.needs_ours() && !Formula::read("r0001 * 8").unwrap().needs_ours());
    }

    #[test]
    fn rounding_works_and_division_by_nothing_is_an_error() {
        let none = |_: &Variable| -> Result<f64, Error> { Ok(0.0) };
        assert_eq!(Formula::read("ceil(128 / 64) + floor(1.5)").unwrap().compute(none).unwrap(), 3.0);
        assert!(Formula::read("1 / r0001").unwrap().compute(none).is_err());
        assert!(Formula::read("1 +").is_err());
    }
}
