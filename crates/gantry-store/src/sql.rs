//! The seam between the store and its database: statements, values and rows. Only `sql/sqlite.rs` and its modules name the
//! driver.
//!
//! Statements are a closed set: [`statements!`] and [`list!`] make them and register them, so that tests prepare every one of
//! them on SQLite and on PostgreSQL. They are written in SQL that both take, with `$n` placeholders. SQLite numbers
//! placeholders by their first use, so the first uses are in ascending order, which a test checks.

mod sqlite;
#[cfg(test)]
mod tests;

pub(crate) use sqlite::{Connection, Row};

use crate::error::Error;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, GrantId, KeyId, NodeId, ProcessId, SessionId};
use gantry_core::{Role, State};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::sync::Arc;

/// A registered statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement(&'static str);

impl Statement {
    /// For [`statements!`] alone.
    pub(crate) const fn registered(sql: &'static str) -> Self {
        Self(sql)
    }

    fn text(self) -> &'static str {
        self.0
    }
}

/// A registered list: a `SELECT` that ends in a `WHERE` clause, the conditions that may follow, and the order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    pub(crate) select: &'static str,
    /// `$?` stands for the value of a condition or, in parentheses, for any number of values.
    #[cfg(test)]
    pub(crate) conditions: &'static [Condition],
    pub(crate) order: &'static str,
}

/// A condition of a [`List`]; only [`list!`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition(pub(crate) &'static str);

/// Names statements and registers them as the `STATEMENTS` of their file, which `sql::tests` lists.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)+) => {
        $($(#[$doc])* const $name: $crate::sql::Statement = $crate::sql::Statement::registered($sql);)+
        #[cfg(test)]
        pub(crate) const STATEMENTS: &[$crate::sql::Statement] = &[$($name),+];
    };
}

/// Names a list and its conditions. `sql::tests` lists it.
macro_rules! list {
    ($list:ident = $select:expr, $order:literal; $($name:ident = $condition:literal;)+) => {
        $(const $name: $crate::sql::Condition = $crate::sql::Condition($condition);)+
        pub(crate) const $list: $crate::sql::List = $crate::sql::List {
            select: $select,
            #[cfg(test)]
            conditions: &[$($name),+],
            order: $order,
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
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*] };
}

pub(crate) use {list, names, placeholders, statements, values};

/// A value of a placeholder or a column. Flags are the numbers 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Number(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Self::Number(flag.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a, T: Into<Self>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A type that a column holds.
pub(crate) trait Column: Sized {
    /// `None` when the value is of another type or no word of the type.
    fn read(value: Value<'_>) -> Option<Self>;
}

impl Column for i64 {
    fn read(value: Value<'_>) -> Option<Self> {
        if let Value::Number(number) = value { Some(number) } else { None }
    }
}

impl Column for u32 {
    fn read(value: Value<'_>) -> Option<Self> {
        i64::read(value).and_then(|number| number.try_into().ok())
    }
}

impl Column for bool {
    fn read(value: Value<'_>) -> Option<Self> {
        i64::read(value).map(|number| number != 0)
    }
}

impl<T: Column> Column for Option<T> {
    fn read(value: Value<'_>) -> Option<Self> {
        if value == Value::Null { Some(None) } else { T::read(value).map(Some) }
    }
}

/// Reads a row of one column.
pub(crate) fn single<T: Column>(row: &mut Row<'_>) -> Result<T, Error> {
    row.take()
}

macro_rules! texts {
    ($($text:ty),+) => {$(
        impl<'a> From<&'a $text> for Value<'a> {
            fn from(text: &'a $text) -> Self {
                Self::Text(text)
            }
        }

        impl Column for $text {
            fn read(value: Value<'_>) -> Option<Self> {
                if let Value::Text(text) = value { Some(text.to_owned().into()) } else { None }
            }
        }
    )+};
}

texts!(String, Arc<str>, Cow<'static, str>);

macro_rules! bytes {
    ($($id:ty),+) => {$(
        impl<'a> From<&'a $id> for Value<'a> {
            fn from(id: &'a $id) -> Self {
                Self::Bytes(id.as_bytes())
            }
        }

        impl Column for $id {
            fn read(value: Value<'_>) -> Option<Self> {
                if let Value::Bytes(bytes) = value { bytes.try_into().ok().map(Self::from_bytes) } else { None }
            }
        }
    )+};
}

bytes!(ApprovalId, CallId, Digest, GrantId, KeyId, NodeId, ProcessId, SessionId);

/// Words of closed sets.
macro_rules! words {
    ($($word:ty, $as_str:path, $parse:path;)+) => {$(
        impl From<$word> for Value<'_> {
            fn from(word: $word) -> Self {
                Self::Text($as_str(word))
            }
        }

        impl Column for $word {
            fn read(value: Value<'_>) -> Option<Self> {
                if let Value::Text(text) = value { $parse(text) } else { None }
            }
        }
    )+};
}

words! {
    State, State::as_str, State::parse;
    Role, role_word, role;
}

fn role_word(role: Role) -> &'static str {
    match role {
        Role::Agent => "agent",
        Role::Approver => "approver",
        Role::Admin => "admin",
    }
}

fn role(word: &str) -> Option<Role> {
    [Role::Agent, Role::Approver, Role::Admin].into_iter().find(|role| role_word(*role) == word)
}

/// The text of a column that holds JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(Error::unexpected)
}

/// The value of a column that holds JSON.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::corrupt(error.to_string()))
}

/// A page of a list: the conditions that apply, with their values.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    sql: String,
    order: &'static str,
    values: Vec<Value<'a>>,
}

impl<'a> Query<'a> {
    pub(crate) fn new(list: &List) -> Self {
        Self { sql: list.select.to_owned(), order: list.order, values: Vec::new() }
    }

    /// Adds a condition, unless there is no value for it.
    pub(crate) fn and(&mut self, condition: Condition, value: Option<impl Into<Value<'a>>>) {
        if let Some(value) = value {
            self.push(condition, &[value.into()]);
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
            Some(values) => self.push(condition, &values.iter().map(Value::from).collect::<Vec<_>>()),
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
        self.values.push(limit.into());
        (format!("{} {} LIMIT ${}", self.sql, self.order, self.values.len()), self.values)
    }
}
