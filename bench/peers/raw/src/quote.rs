//! The tool `quote`: reads an order, validates it by hand, and answers with its cost.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Text that is borrowed from the input, unless it contains escapes.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
pub(crate) struct Order<'a> {
    #[serde(borrow)]
    reference: Text<'a>,
    #[serde(borrow)]
    customer: Customer<'a>,
    priority: Priority,
    #[serde(borrow)]
    lines: Vec<OrderLine<'a>>,
    gift: bool,
    discount: Option<u32>,
}

#[derive(Deserialize)]
struct Customer<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, rename = "email")]
    _email: Option<Text<'a>>,
    #[serde(borrow)]
    address: Address<'a>,
}

#[derive(Deserialize)]
struct Address<'a> {
    #[serde(borrow)]
    street: Vec<Text<'a>>,
    #[serde(borrow)]
    city: Text<'a>,
    #[serde(borrow)]
    postcode: Text<'a>,
    #[serde(borrow)]
    country: Text<'a>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Priority {
    Standard,
    Express,
    Overnight,
}

#[derive(Deserialize)]
struct OrderLine<'a> {
    #[serde(borrow)]
    sku: Text<'a>,
    quantity: u32,
    price: i64,
    #[serde(borrow)]
    note: Option<Text<'a>>,
    #[serde(borrow)]
    tags: Vec<Text<'a>>,
}

#[derive(Serialize)]
pub(crate) struct Quote<'a> {
    reference: Text<'a>,
    customer: Text<'a>,
    priority: Priority,
    lines: Vec<QuoteLine<'a>>,
    delivery: Delivery<'a>,
    total: i64,
}

#[derive(Serialize)]
struct QuoteLine<'a> {
    sku: Text<'a>,
    quantity: u32,
    price: i64,
    net: i64,
    tax: i64,
    total: i64,
    available: bool,
    warehouse: &'static str,
    weight: f64,
    note: Option<Text<'a>>,
    tags: Vec<Text<'a>>,
}

#[derive(Serialize)]
struct Delivery<'a> {
    carrier: &'static str,
    days: u32,
    address: Vec<Text<'a>>,
}

impl<'a> Order<'a> {
    /// Validates the order by the rules of the schema, and computes its cost.
    pub(crate) fn quote(self) -> Result<Quote<'a>, String> {
        self.validate()?;
        let percent = 100 - i64::from(self.discount.unwrap_or_default());
        let quote = |line: OrderLine<'a>| line.quote(percent);
        let lines: Vec<_> = self.lines.into_iter().map(quote).collect();
        let Address {
            street: mut address,
            city,
            postcode,
            country,
        } = self.customer.address;
        address.push(Text(Cow::Owned(format!("{} {}", postcode.0, city.0))));
        address.push(country);
        Ok(Quote {
            reference: self.reference,
            customer: self.customer.name,
            priority: self.priority,
            total: lines.iter().map(|line| line.total).sum(),
            lines,
            delivery: Delivery {
                carrier: if self.gift { "Courier" } else { "Post" },
                days: match self.priority {
                    Priority::Standard => 7,
                    Priority::Express => 2,
                    Priority::Overnight => 1,
                },
                address,
            },
        })
    }

    fn validate(&self) -> Result<(), String> {
        length("reference", &self.reference, 1, 64)?;
        length("customer.name", &self.customer.name, 1, 100)?;
        length(
            "customer.address.country",
            &self.customer.address.country,
            2,
            2,
        )?;
        within(
            "customer.address.street",
            self.customer.address.street.len(),
            1,
            4,
        )?;
        within("lines", self.lines.len(), 1, 200)?;
        within(
            "discount",
            self.discount.unwrap_or_default() as usize,
            0,
            100,
        )?;
        self.lines.iter().try_for_each(|line| {
            length("sku", &line.sku, 1, 32)?;
            within("quantity", line.quantity as usize, 1, 1000)?;
            if line.price < 0 {
                return Err("price is less than 0".to_owned());
            }
            Ok(())
        })
    }
}

impl<'a> OrderLine<'a> {
    fn quote(self, percent: i64) -> QuoteLine<'a> {
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
            warehouse: if self.quantity.is_multiple_of(2) {
                "rotterdam"
            } else {
                "stuttgart"
            },
            weight: f64::from(self.quantity) * 0.25,
            note: self.note,
            tags: self.tags,
        }
    }
}

/// Checks the length, which is counted in characters. There are never more characters than bytes.
fn length(name: &str, text: &Text<'_>, min: usize, max: usize) -> Result<(), String> {
    let bytes = text.0.len();
    let count = if bytes <= max && min <= 1 {
        bytes
    } else {
        text.0.chars().count()
    };
    within(name, count, min, max)
}

fn within(name: &str, number: usize, min: usize, max: usize) -> Result<(), String> {
    if (min..=max).contains(&number) {
        Ok(())
    } else {
        Err(format!("{name} is not between {min} and {max}"))
    }
}
