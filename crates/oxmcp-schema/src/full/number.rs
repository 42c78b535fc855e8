//! Comparison of numbers by their mathematical value, whatever their notation, and the order of values that is based on
//! it.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// The number of bytes of a value that count as one step if they are only compared or counted.
pub(crate) const BYTES_PER_STEP: usize = 64;

/// Compares two numbers exactly, without rounding integers.
pub(crate) fn compare(one: &Number, other: &Number) -> Ordering {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(one), None) => compare_mixed(one, float(other)),
        (None, Some(other)) => compare_mixed(other, float(one)).reverse(),
        (None, None) => float(one).total_cmp(&float(other)),
    }
}

/// Whether the number has no fraction, such as 1.0.
pub(crate) fn is_integral(number: &Number) -> bool {
    integer(number).is_some() || float(number).fract() == 0.0
}

/// Whether the number is in the range of machine integers.
pub(crate) fn is_moderate(number: &Number) -> bool {
    float(number).abs() < 1e19
}

/// The number as a count, if it is a non-negative integer.
pub(crate) fn count(number: &Number) -> Option<u64> {
    let float = || number.as_f64().filter(|it| it.fract() == 0.0);
    number
        .as_u64()
        .or_else(|| u64::try_from(exact(float()?)?).ok())
}

fn integer(number: &Number) -> Option<i128> {
    let signed = number.as_i64().map(i128::from);
    signed.or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    // A number without an `f64` value counts as larger than all others. Adding zero makes both zeros equal.
    number.as_f64().unwrap_or(f64::INFINITY) + 0.0
}

fn compare_mixed(integer: i128, float: f64) -> Ordering {
    match exact(float.trunc()) {
        Some(whole) => integer
            .cmp(&whole)
            .then_with(|| 0.0_f64.total_cmp(&(float.fract() + 0.0))),
        None if float > 0.0 => Ordering::Less,
        None => Ordering::Greater,
    }
}

/// A whole float as an integer, if it is in the range of exact conversion.
#[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
fn exact(whole: f64) -> Option<i128> {
    (whole.abs() < 1e38).then_some(whole as i128)
}

/// A number in decimal notation: `digits * 10^exponent`. In this form 19.99 is a multiple of 0.01, unlike in binary.
#[derive(Debug)]
pub(crate) struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    pub(crate) fn new(number: &Number) -> Option<Self> {
        if let Some(integer) = integer(number) {
            let digits = u64::try_from(integer.unsigned_abs()).ok()?;
            return Some(Self {
                digits,
                exponent: 0,
            });
        }
        // The shortest text for this float, which is most likely the one in the schema.
        let text = format!("{:e}", number.as_f64()?.abs());
        let (mantissa, exponent) = text.split_once('e')?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let shift = i32::try_from(fraction.len()).ok()?;
        let exponent = exponent.parse::<i32>().ok()? - shift;
        Some(Self { digits, exponent })
    }

    /// Whether this is a multiple of `divisor`. Nothing can overflow, since large numbers are reduced to a remainder of
    /// 64 bits.
    pub(crate) fn is_multiple_of(&self, divisor: &Self) -> bool {
        if divisor.digits == 0 {
            return self.digits == 0;
        }
        let power = self.exponent - divisor.exponent;
        if power < 0 {
            let larger = (0..-power).try_fold(u128::from(divisor.digits), |product, _| {
                product.checked_mul(10)
            });
            return match larger {
                Some(larger) => u128::from(self.digits).is_multiple_of(larger),
                None => self.digits == 0,
            };
        }
        let divisor = u128::from(divisor.digits);
        let power = power_of_ten(power.unsigned_abs(), divisor);
        (u128::from(self.digits) % divisor * power).is_multiple_of(divisor)
    }
}

/// The remainder of a power of ten, computed by squaring, since the exponent can be in the hundreds.
fn power_of_ten(mut exponent: u32, divisor: u128) -> u128 {
    let (mut power, mut square) = (1 % divisor, 10 % divisor);
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power * square % divisor;
        }
        square = square * square % divisor;
        exponent /= 2;
    }
    power
}

/// A total order of values in which those are equal that are equal in JSON Schema. Adds the steps that it takes to
/// `work`.
pub(crate) fn order(one: &Value, other: &Value, work: &mut usize) -> Ordering {
    *work += 1;
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Number(one), Value::Number(other)) => compare(one, other),
        (Value::String(one), Value::String(other)) => order_texts(one, other, work),
        (Value::Array(one), Value::Array(other)) => {
            let pairs = one.iter().zip(other);
            let pairs = pairs.map(|(one, other)| order(one, other, work));
            first_difference(pairs).then_with(|| one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            *work += one.len() + other.len();
            let (one, other) = (members(one), members(other));
            let pairs = one.iter().zip(&other);
            let differences = pairs.map(|(one, other)| {
                let names = order_texts(one.0, other.0, work);
                names.then_with(|| order(one.1, other.1, work))
            });
            first_difference(differences).then_with(|| one.len().cmp(&other.len()))
        }
        _ => rank(one).cmp(&rank(other)),
    }
}

fn order_texts(one: &str, other: &str, work: &mut usize) -> Ordering {
    *work += one.len().min(other.len()) / BYTES_PER_STEP;
    one.cmp(other)
}

/// The values in their order. Adds to `work` as [`order`] does.
pub(crate) fn sorted<'v>(values: &'v [Value], work: &mut usize) -> Vec<&'v Value> {
    let mut sorted: Vec<_> = values.iter().collect();
    sorted.sort_by(|one, other| order(one, other, work));
    sorted
}

/// The members sorted by name. The map itself is unsorted if another crate enables a feature of serde_json.
fn members(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = map.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    members
}

fn first_difference(mut parts: impl Iterator<Item = Ordering>) -> Ordering {
    parts.find(|part| part.is_ne()).unwrap_or(Ordering::Equal)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_exact_value() {
        let cases = [
            (json!(1), json!(1.0), Ordering::Equal),
            (json!(0), json!(-0.0), Ordering::Equal),
            (json!(0.0), json!(-0.0), Ordering::Equal),
            (json!(1), json!(1.5), Ordering::Less),
            (json!(-1), json!(-1.5), Ordering::Greater),
            (
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992.0),
                Ordering::Greater,
            ),
            (json!(u64::MAX), json!(1e300), Ordering::Less),
            (json!(i64::MIN), json!(-1e300), Ordering::Greater),
            (
                json!([1, {"a": 2.0}]),
                json!([1.0, {"a": 2}]),
                Ordering::Equal,
            ),
            (json!([1]), json!([1, 2]), Ordering::Less),
            (json!({"a": 1}), json!({"b": 1}), Ordering::Less),
            (json!(null), json!(false), Ordering::Less),
        ];
        for (one, other, expected) in cases {
            assert_eq!(order(&one, &other, &mut 0), expected, "{one} {other}");
            assert_eq!(
                order(&other, &one, &mut 0),
                expected.reverse(),
                "{other} {one}"
            );
        }
    }

    #[test]
    fn multiples_are_compared_in_decimal() {
        let cases = [
            (json!(19.99), json!(0.01), true),
            (json!(0.0075), json!(0.0001), true),
            (json!(0.00751), json!(0.0001), false),
            (json!(7), json!(5), false),
            (json!(-10), json!(5), true),
            (json!(4.5), json!(1.5), true),
            (json!(0), json!(0.3), true),
            (json!(1e308), json!(0.5), true),
            (json!(1e308), json!(0.123_456_789), false),
            (json!(1e-300), json!(1e300), false),
            (json!(u64::MAX), json!(5), true),
            (json!(1e308), json!(5e-324), true),
            (json!(1e308), json!(u64::MAX), false),
            (json!(7e22), json!(70_000_000_000_u64), true),
        ];
        for (number, divisor, expected) in cases {
            let [number, divisor] =
                [number, divisor].map(|it| Decimal::new(it.as_number().unwrap()).unwrap());
            assert_eq!(
                number.is_multiple_of(&divisor),
                expected,
                "{number:?} {divisor:?}"
            );
        }
    }
}
