//! The seam between the store and its database: statements, values and rows. Only `sql/sqlite.rs` names the driver.
//!
//! Statements are a closed set: [`statements!`] and [`list!`] make them and register them, so that tests prepare every one of
//! them on SQLite and on PostgreSQL. They are written in SQL that both take, with `$n` placeholders. SQLite numbers
//! placeholders by their first use, so the first uses are in ascending order, which a test checks.

mod sqlite;
#[cfg(test)]
mod tests;

pub(crate) use sqlite::{Connection, Place, Prepared, Row};

use crate::approvals::{ApprovalDetails, DecisionRow, WebhookSent};
use crate::error::Error;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, GrantId, KeyId, NodeId, ProcessId, SessionId};
use gantry_core::{Role, State};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::sync::Arc;

/// A statement; only [`statements!`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement(pub(crate) &'static str);

/// A registered list: a `SELECT` that ends in a `WHERE` clause, the conditions that may follow, the order, and what comes
/// after the limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    pub(crate) select: &'static str,
    /// `$?` stands for the value of a condition or, in parentheses, for any number of values.
    #[cfg(test)]
    pub(crate) conditions: &'static [Condition],
    pub(crate) order: &'static str,
    pub(crate) end: &'static str,
}

/// A condition of a [`List`]; only [`list!`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition(pub(crate) &'static str);

/// Names statements and registers them as the `STATEMENTS` of their file, which `sql::tests` lists.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)+) => {
        $($(#[$doc])* const $name: $crate::sql::Statement = $crate::sql::Statement($sql);)+
        #[cfg(test)]
        pub(crate) const STATEMENTS: &[$crate::sql::Statement] = &[$($name),+];
    };
}

/// Names a list and its conditions. `sql::tests` lists it.
macro_rules! list {
    ($list:ident = $select:expr, $order:literal $(, $end:literal)?; $($name:ident = $condition:literal;)+) => {
        $(const $name: $crate::sql::Condition = $crate::sql::Condition($condition);)+
        pub(crate) const $list: $crate::sql::List = $crate::sql::List {
            select: $select,
            #[cfg(test)]
            conditions: &[$($name),+],
            order: $order,
            end: concat!($($end)?),
        };
    };
}

/// The names of columns, for a `SELECT` or the head of an `INSERT`.
macro_rules! names {
    ($first:ident $(, $column:ident)*) => { concat!(stringify!($first) $(, ", ", stringify!($column))*) };
}

/// As many placeholders as there are columns.
macro_rules! placeholders {
    (@ [$($unused:literal)*] [$first:literal $($number:literal)*]) => { concat!($first $(, ", ", $number)*) };
    (@ [$next:literal $($unused:literal)*] [$($number:literal)*] $column:ident $($columns:ident)*) => {
        placeholders!(@ [$($unused)*] [$($number)* $next] $($columns)*)
    };
    ($($column:ident),+) => {
        placeholders!(@ ["$1" "$2" "$3" "$4" "$5" "$6" "$7" "$8" "$9" "$10" "$11" "$12" "$13" "$14" "$15" "$16" "$17"
            "$18" "$19" "$20" "$21" "$22" "$23" "$24" "$25" "$26" "$27" "$28"] [] $($column)+)
    };
}

/// The values of a statement, in the order of its placeholders.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::ToValue::value(&$value)),*] };
}

/// Makes a type a [`Record`] of these fields, in the order of their columns. The others have their default.
macro_rules! record {
    ($record:ident: $($field:ident),+ $(; default $($rest:ident),+)?) => {
        impl $crate::sql::Record for $record {
            fn write<'a>(&'a self, values: &mut Vec<$crate::sql::Value<'a>>) {
                $(self.$field.write(values);)+
            }

            fn read(row: &mut $crate::sql::Row<'_>) -> Result<Self, $crate::Error> {
                Ok(Self { $($field: $crate::sql::Record::read(row)?,)+ $($($rest: Default::default()),+)? })
            }
        }
    };
}

pub(crate) use {list, names, placeholders, record, statements, values};

/// A value of a placeholder or a column. Flags are the numbers 0 and 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Number(i64),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
}

/// A type that a placeholder takes.
pub(crate) trait ToValue {
    fn value(&self) -> Value<'_>;
}

/// A type that a column holds.
pub(crate) trait Column: ToValue + Sized {
    /// `None` when the value is of another type or no word of the type.
    fn parse(value: Value<'_>) -> Option<Self>;
}

/// A type that one column or several hold.
pub(crate) trait Record: Sized {
    /// Adds the values of its columns, in their order.
    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>);

    /// Reads its columns, which are the next of the row.
    fn read(row: &mut Row<'_>) -> Result<Self, Error>;

    fn values(&self) -> Vec<Value<'_>> {
        let mut values = Vec::new();
        self.write(&mut values);
        values
    }
}

impl<T: Column> Record for T {
    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
        values.push(self.value());
    }

    fn read(row: &mut Row<'_>) -> Result<Self, Error> {
        row.take()
    }
}

impl ToValue for str {
    fn value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(self))
    }
}

impl ToValue for [u8] {
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn value(&self) -> Value<'_> {
        (*self).value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, ToValue::value)
    }
}

impl<T: Column> Column for Option<T> {
    fn parse(value: Value<'_>) -> Option<Self> {
        if value == Value::Null { Some(None) } else { T::parse(value).map(Some) }
    }
}

/// Types with their kind of value, how they are written as it and how they are read from it.
macro_rules! column_types {
    ($($type:ty: $kind:ident, $this:ident => $write:expr, $read:expr;)+) => {$(
        impl ToValue for $type {
            fn value(&self) -> Value<'_> {
                let $this = self;
                Value::$kind($write)
            }
        }

        impl Column for $type {
            fn parse(value: Value<'_>) -> Option<Self> {
                if let Value::$kind(value) = value { ($read)(value) } else { None }
            }
        }
    )+};
}

column_types! {
    i64: Number, number => *number, Some;
    u32: Number, number => i64::from(*number), |number: i64| number.try_into().ok();
    u64: Number, number => i64::try_from(*number).unwrap_or(i64::MAX), |number| Some(u64::try_from(number).unwrap_or(0));
    bool: Number, flag => i64::from(*flag), |number| Some(number != 0);
    WebhookSent: Number, sent => sent.as_number(), |number| Some(WebhookSent::from_number(number));
    String: Text, text => Cow::Borrowed(text.as_str()), |text: Cow<'_, str>| Some(text.into_owned());
    Arc<str>: Text, text => Cow::Borrowed(&**text), |text: Cow<'_, str>| Some(text.into());
    Cow<'static, str>: Text, text => Cow::Borrowed(&**text), |text: Cow<'_, str>| Some(text.into_owned().into());
    State: Text, state => Cow::Borrowed(state.as_str()), |text: Cow<'_, str>| State::parse(&text);
    Role: Text, role => Cow::Borrowed(role.as_str()), |text: Cow<'_, str>| Role::parse(&text);
}

/// Types that are stored as JSON. A text that cannot be written is none that can be read.
macro_rules! json_types {
    ($($type:ty),+) => {
        column_types! {$($type: Text, value => Cow::Owned(serde_json::to_string(value).unwrap_or_default()),
            |text: Cow<'_, str>| serde_json::from_str(&text).ok();)+}
    };
}

json_types!(Vec<Arc<str>>, DecisionRow, ApprovalDetails);

macro_rules! byte_types {
    ($($type:ident),+) => {
        column_types! {$($type: Bytes, id => id.as_bytes(), |bytes: &[u8]| bytes.try_into().ok().map($type::from_bytes);)+}
    };
}

byte_types!(ApprovalId, CallId, Digest, GrantId, KeyId, NodeId, ProcessId, SessionId);

pub(crate) fn single<T: Column>(row: &mut Row<'_>) -> Result<T, Error> {
    row.take()
}

/// Room for the body of a usual entry of the ledger, so that writing it does not grow the text several times.
const USUAL_JSON_BYTES: usize = 1024;

pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Error> {
    let mut text = Vec::with_capacity(USUAL_JSON_BYTES);
    serde_json::to_writer(&mut text, value).map_err(Error::unexpected)?;
    String::from_utf8(text).map_err(Error::unexpected)
}

/// The value of a column that holds JSON, or what is wrong with its text.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// A page of a list: the conditions that apply, with their values.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    sql: String,
    list: List,
    values: Vec<Value<'a>>,
}

impl<'a> Query<'a> {
    pub(crate) fn new(list: List) -> Self {
        Self { sql: list.select.to_owned(), list, values: Vec::new() }
    }

    /// Adds a condition, unless there is no value for it.
    pub(crate) fn and(&mut self, condition: Condition, value: &'a Option<impl ToValue>) {
        if let Some(value) = value {
            self.push(condition, &[value.value()]);
        }
    }

    /// Adds a condition that takes no value.
    pub(crate) fn and_if(&mut self, condition: Condition, applies: bool) {
        if applies {
            self.push(condition, &[]);
        }
    }

    /// Adds a condition with any number of values, unless there is no list of them. None of an empty list matches.
    pub(crate) fn and_any(&mut self, condition: Condition, values: Option<&'a [Arc<str>]>) {
        match values {
            None => {}
            Some([]) => self.push(condition, &[Value::Null]),
            Some(values) => self.push(condition, &values.iter().map(ToValue::value).collect::<Vec<_>>()),
        }
    }

    fn push(&mut self, condition: Condition, values: &[Value<'a>]) {
        let first = self.values.len() + 1;
        let numbers: Vec<_> = (first..first + values.len()).map(|number| format!("${number}")).collect();
        self.sql.push_str(" AND ");
        self.sql.push_str(&condition.0.replace("$?", &numbers.join(", ")));
        self.values.extend_from_slice(values);
    }

    /// The statement, which takes its limit last, and its values.
    pub(crate) fn finish(mut self, limit: u32) -> (String, Vec<Value<'a>>) {
        self.values.push(Value::Number(limit.into()));
        let List { order, end, .. } = self.list;
        (format!("{} {order} LIMIT ${}{end}", self.sql, self.values.len()), self.values)
    }
}
