//! Lists, read page by page. A bad item is left out; a list without end is an error.

use super::inner::ConnectionInner;
use super::limits::{CURSOR_BYTES, ITEMS, LIST_BYTES, PAGES};
use super::types::{ListKind, UpstreamError};
use crate::raw;
use std::collections::HashSet;

impl ConnectionInner {
    /// Everything of a kind, as the server sent it.
    pub(super) async fn list(&self, kind: ListKind) -> Result<Vec<Box<str>>, UpstreamError> {
        let mut items = Vec::new();
        let mut bytes = 0;
        let mut seen = HashSet::new();
        let mut params = "{}".to_owned();
        for _ in 0..PAGES {
            let page = self.own(kind.method(), &params).await?;
            self.take_page(kind, &page, &mut items)?;
            bytes += page.len();
            if items.len() > ITEMS || bytes > LIST_BYTES {
                return Err(wrong(kind, &format!("more than {ITEMS} items or {LIST_BYTES} bytes")));
            }
            // An empty cursor is one; `null` is none.
            let Some(cursor) = raw::member(&page, "nextCursor").filter(|cursor| *cursor != "null") else {
                let server = &self.dispatcher().target.name;
                return Ok(match kind {
                    ListKind::Tools => self.tools.update(server, self.is_modern(), items),
                    ListKind::Resources | ListKind::Templates | ListKind::Prompts => items,
                });
            };
            if cursor.len() > CURSOR_BYTES || raw::string(cursor).is_none() {
                return Err(wrong(kind, "a cursor that is not a string of reasonable length"));
            }
            if !seen.insert(cursor.to_owned()) {
                return Err(wrong(kind, "the same cursor twice, so the list would not end"));
            }
            params = raw::object([("cursor", cursor)]);
        }
        Err(wrong(kind, &format!("more than {PAGES} pages")))
    }

    fn take_page(&self, kind: ListKind, page: &str, items: &mut Vec<Box<str>>) -> Result<(), UpstreamError> {
        let elements = raw::member(page, kind.member()).and_then(raw::elements);
        let elements = elements.ok_or_else(|| wrong(kind, &format!("no list under {:?}", kind.member())))?;
        for element in elements {
            if element.starts_with('{') {
                items.push(element.into());
            } else {
                let server = &self.dispatcher().target.name;
                tracing::warn!(%server, list = kind.method(), "an item that is not an object is left out");
            }
        }
        Ok(())
    }
}

fn wrong(kind: ListKind, what: &str) -> UpstreamError {
    UpstreamError::OutcomeUnknown(format!("the server answered {} with {what}", kind.method()))
}
