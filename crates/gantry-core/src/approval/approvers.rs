//! Who may approve a call, where rules name approvers.

use std::fmt;

/// Who may approve a call. One decision is one person's, so the approver must be in every list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approvers<'a> {
    /// Every approver: no rule names one.
    Any,
    OneOf(Vec<&'a str>),
    /// No approver: these lists have no name in common.
    None(Vec<Vec<&'a str>>),
}

impl<'a> Approvers<'a> {
    /// The approvers by the lists of the rules; an empty list restricts nothing.
    pub fn by<L, N>(lists: impl IntoIterator<Item = L>) -> Self
    where
        L: IntoIterator<Item = &'a N>,
        N: AsRef<str> + ?Sized + 'a,
    {
        // Limit: there are as many lists as rules that ask, which the configuration bounds.
        let mut named: Vec<Vec<&'a str>> = Vec::new();
        for list in lists {
            let list: Vec<&str> = list.into_iter().map(AsRef::as_ref).collect();
            // Several rules often name the same people.
            if !list.is_empty() && !named.contains(&list) {
                named.push(list);
            }
        }
        let Some(first) = named.first() else { return Self::Any };
        let common: Vec<&str> =
            first.iter().copied().filter(|name| named.iter().all(|list| list.contains(name))).collect();
        if common.is_empty() { Self::None(named) } else { Self::OneOf(common) }
    }

    pub fn includes(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(names) => names.contains(&name),
            Self::None(_) => false,
        }
    }

    /// The message for a person who may not approve the call.
    pub fn refusal(&self) -> String {
        match self {
            Self::Any | Self::OneOf(_) => format!("this call takes the yes of {self}"),
            Self::None(_) => format!("{self}; change the rules, or deny it"),
        }
    }
}

impl fmt::Display for Approvers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any approver"),
            Self::OneOf(names) => f.write_str(&names.join(" or ")),
            Self::None(lists) => {
                let lists: Vec<String> = lists.iter().map(|names| names.join(" or ")).collect();
                write!(f, "no approver is in every list ({}), so it cannot be approved", lists.join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_the_approval_of_a_person_whom_every_list_names() {
        let cases: [(&[&[&str]], &str, &str); 6] = [
            (&[], "any approver", "this call takes the yes of any approver"),
            (&[&[]], "any approver", "this call takes the yes of any approver"),
            (&[&["ann", "ben"]], "ann or ben", "this call takes the yes of ann or ben"),
            (&[&["ann", "ben"], &["ann", "ben"], &[]], "ann or ben", "this call takes the yes of ann or ben"),
            (&[&["ann", "ben"], &["ben", "person"]], "ben", "this call takes the yes of ben"),
            (
                &[&["ann"], &["ben", "cy"], &["ann"]],
                "no approver is in every list (ann; ben or cy), so it cannot be approved",
                "no approver is in every list (ann; ben or cy), so it cannot be approved; change the rules, or deny it",
            ),
        ];
        for (lists, who, refusal) in cases {
            let may = Approvers::by(lists.iter().map(|names| names.iter().copied()));
            assert_eq!((may.to_string().as_str(), may.refusal().as_str()), (who, refusal), "{lists:?}");
        }
    }

    #[test]
    fn a_yes_counts_of_those_who_are_named() {
        let may = |lists: &[&'static [&'static str]]| {
            Approvers::by(lists.iter().map(|names| names.iter().copied())).includes("ben")
        };
        assert!(may(&[]) && may(&[&["ann", "ben"], &["ben"]]));
        assert!(!may(&[&["ann"]]) && !may(&[&["ann"], &["ben"]]));
    }
}
