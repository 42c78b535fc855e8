//! The rich tool `quote`: an order of 2 KiB that becomes a quote of 4 KiB, as types with a schema, and as requests and checks.

use serde::Deserialize;

/// The number of lines of an order.
const ORDER_LINES: usize = 16;

/// Defines the types of the tool `quote` and its computation, in a crate that has `serde`: the arguments are `Order`, with the
/// derive for schemas that is passed to the macro, and the result of `Order::quote` is `Quote`.
///
/// Servers on SDKs share these types, so that all serve the same schema; the raw server has its own.
#[macro_export]
macro_rules! order_types {
    ($($schema:tt)+) => {
        /// An order, as a customer sends it.
        #[derive(serde::Deserialize, $($schema)+)]
        pub struct Order {
            /// The customer's name for the order.
            #[schemars(length(min = 1, max = 64))]
            reference: String,
            customer: Customer,
            priority: Priority,
            #[schemars(length(min = 1, max = 200))]
            lines: Vec<OrderLine>,
            /// Whether to leave the prices out of the parcel.
            gift: bool,
            /// In percent.
            #[schemars(range(min = 0, max = 100))]
            discount: Option<u32>,
        }

        /// Who orders.
        #[derive(serde::Deserialize, $($schema)+)]
        pub struct Customer {
            #[schemars(length(min = 1, max = 100))]
            name: String,
            email: Option<String>,
            address: Address,
        }

        /// Where to deliver.
        #[derive(serde::Deserialize, $($schema)+)]
        pub struct Address {
            #[schemars(length(min = 1, max = 4))]
            street: Vec<String>,
            city: String,
            postcode: String,
            /// ISO 3166-1 alpha-2.
            #[schemars(length(min = 2, max = 2))]
            country: String,
        }

        /// How soon to deliver.
        #[derive(Clone, Copy, serde::Deserialize, serde::Serialize, $($schema)+)]
        #[serde(rename_all = "snake_case")]
        pub enum Priority {
            /// Within a week.
            Standard,
            /// Within two days.
            Express,
            /// The next day.
            Overnight,
        }

        /// So many of one thing.
        #[derive(serde::Deserialize, $($schema)+)]
        pub struct OrderLine {
            #[schemars(length(min = 1, max = 32))]
            sku: String,
            #[schemars(range(min = 1, max = 1000))]
            quantity: u32,
            /// In cents.
            #[schemars(range(min = 0))]
            price: i64,
            note: Option<String>,
            tags: Vec<String>,
        }

        /// What an order costs, and when it arrives.
        #[derive(serde::Serialize, $($schema)+)]
        pub struct Quote {
            reference: String,
            customer: String,
            priority: Priority,
            lines: Vec<QuoteLine>,
            delivery: Delivery,
            /// In cents.
            total: i64,
        }

        /// What one line of an order costs.
        #[derive(serde::Serialize, $($schema)+)]
        pub struct QuoteLine {
            sku: String,
            quantity: u32,
            /// In cents.
            price: i64,
            /// In cents.
            net: i64,
            /// In cents.
            tax: i64,
            /// In cents.
            total: i64,
            available: bool,
            warehouse: Warehouse,
            /// In kilograms.
            weight: f64,
            note: Option<String>,
            tags: Vec<String>,
        }

        /// Where it lies.
        #[derive(serde::Serialize, $($schema)+)]
        #[serde(rename_all = "snake_case")]
        pub enum Warehouse {
            /// Near the sea.
            Rotterdam,
            /// In the hills.
            Stuttgart,
        }

        /// How it comes.
        #[derive(serde::Serialize, $($schema)+)]
        pub struct Delivery {
            carrier: String,
            days: u32,
            address: Vec<String>,
        }

        impl Order {
            /// Computes the cost of the order.
            #[must_use]
            pub fn quote(self) -> Quote {
                let percent = 100 - i64::from(self.discount.unwrap_or_default());
                let lines: Vec<QuoteLine> = self.lines.into_iter().map(|line| line.quote(percent)).collect();
                let Customer { name, email: _, address } = self.customer;
                let Address { street, city, postcode, country } = address;
                let mut address = street;
                address.extend([format!("{postcode} {city}"), country]);
                Quote {
                    reference: self.reference,
                    customer: name,
                    priority: self.priority,
                    total: lines.iter().map(|line| line.total).sum(),
                    lines,
                    delivery: Delivery {
                        carrier: if self.gift { "Courier" } else { "Post" }.to_owned(),
                        days: match self.priority {
                            Priority::Standard => 7,
                            Priority::Express => 2,
                            Priority::Overnight => 1,
                        },
                        address,
                    },
                }
            }
        }

        impl OrderLine {
            fn quote(self, percent: i64) -> QuoteLine {
                let net = self.price * i64::from(self.quantity) * percent / 100;
                let tax = net * 19 / 100;
                QuoteLine {
                    sku: self.sku,
                    quantity: self.quantity,
                    price: self.price,
                    net,
                    tax,
                    total: net + tax,
                    available: self.quantity < 1000,
                    warehouse: if self.quantity.is_multiple_of(2) { Warehouse::Rotterdam } else { Warehouse::Stuttgart },
                    weight: f64::from(self.quantity) * 0.25,
                    note: self.note,
                    tags: self.tags,
                }
            }
        }
    };
}

/// The arguments of `quote` after the beginning of the reference, `{"reference":"order-`, and the number in it.
pub(crate) fn order() -> String {
    let lines: Vec<String> = (0..ORDER_LINES).map(order_line).collect();
    format!(
        r#"","customer":{{"name":"Ada Lovelace","email":"ada@example.com","address":{{"street":["12 St James's Square","Second floor"],"city":"London","postcode":"SW1Y 4JH","country":"GB"}}}},"priority":"express","lines":[{}],"gift":false,"discount":5}}"#,
        lines.join(",")
    )
}

fn order_line(index: usize) -> String {
    let note = if index.is_multiple_of(4) {
        r#""Please wrap \"twice\"""#
    } else {
        "null"
    };
    format!(
        r#"{{"sku":"part-{index:04}-blue","quantity":{},"price":{},"note":{note},"tags":["metal","small","grade-{}"]}}"#,
        quantity(index),
        price(index),
        index % 5
    )
}

fn quantity(index: usize) -> i64 {
    index as i64 * 7 % 13 + 1
}

fn price(index: usize) -> i64 {
    1999 + index as i64 * 321
}

/// The cost of the order with tax, in cents.
fn total() -> i64 {
    let nets = (0..ORDER_LINES).map(|index| price(index) * quantity(index) * 95 / 100);
    nets.map(|net| net + net * 19 / 100).sum()
}

#[derive(Deserialize)]
struct Result<'a> {
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    #[serde(rename = "structuredContent")]
    structured: Option<Quote>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: std::borrow::Cow<'a, str>,
}

/// The members of the structured content that are checked, also in the text that repeats it.
#[derive(Deserialize, PartialEq)]
struct Quote {
    reference: String,
    total: i64,
    lines: Vec<QuoteLine>,
    delivery: Delivery,
}

#[derive(Deserialize, PartialEq)]
struct QuoteLine {
    net: i64,
    tax: i64,
    total: i64,
    weight: f64,
    warehouse: String,
    note: Option<String>,
    tags: Vec<String>,
}

#[derive(Deserialize, PartialEq)]
struct Delivery {
    days: u32,
    address: Vec<String>,
}

/// Checks the result of the order with this number.
pub(crate) fn check(number: u64, result: &str) -> std::result::Result<(), String> {
    let wrong = |e: serde_json::Error| format!("{e} in {result:.200}");
    let result: Result<'_> = serde_json::from_str(result).map_err(wrong)?;
    let quote = result.structured.ok_or("no structured content")?;
    let text = result
        .content
        .first()
        .ok_or("no text next to the structured content")?;
    let repeated: Quote = serde_json::from_str(&text.text).map_err(|e| e.to_string())?;
    if repeated != quote {
        return Err("the text differs from the structured content".into());
    }
    let noted = quote.lines.iter().filter(|line| line.note.is_some());
    let adds_up = |line: &QuoteLine| line.net + line.tax == line.total && line.tags.len() == 3;
    let right = quote.reference == format!("order-{number}")
        && quote.total == total()
        && quote.lines.len() == ORDER_LINES
        && quote.lines.iter().all(adds_up)
        && noted.count() == ORDER_LINES.div_ceil(4)
        && quote.delivery.days == 2
        && quote.delivery.address.len() == 4;
    if right {
        Ok(())
    } else {
        Err(format!("the wrong quote: {:.300}", text.text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(reference: &str, text_total: i64) -> String {
        let lines: Vec<Value> = (0..ORDER_LINES)
            .map(|index| {
                let net = price(index) * quantity(index) * 95 / 100;
                let tax = net * 19 / 100;
                let note = (index % 4 == 0).then_some("wrap");
                json!({"net": net, "tax": tax, "total": net + tax, "weight": 0.5, "warehouse": "rotterdam",
                    "note": note, "tags": ["a", "b", "c"]})
            })
            .collect();
        let quote = |total| {
            json!({"reference": reference, "total": total, "lines": lines,
                "delivery": {"days": 2, "address": ["", "", "", ""]}})
        };
        let text = quote(text_total).to_string();
        json!({"content": [{"type": "text", "text": text}], "structuredContent": quote(total())})
            .to_string()
    }

    #[test]
    fn order_is_two_kib_long() {
        let arguments = format!(r#"{{"reference":"order-1{}"#, order());
        assert!(
            (1800..2300).contains(&arguments.len()),
            "{}",
            arguments.len()
        );
        assert!(serde_json::from_str::<Value>(&arguments).is_ok());
    }

    #[test]
    fn only_the_right_quote_is_accepted() {
        assert_eq!(check(3, &answer("order-3", total())), Ok(()));
        assert!(
            check(4, &answer("order-3", total())).is_err(),
            "another order"
        );
        assert!(
            check(3, &answer("order-3", 1)).is_err(),
            "text and content differ"
        );
    }
}
