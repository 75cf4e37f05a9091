//! Ids that are written short: by the digits that they end with. The digits that they begin with are the time, which requests
//! of that time share.

use crate::error::ApiError;

const MIN_DIGITS: usize = 6;

/// How many ids an error names.
const NAMED: usize = 5;

/// The last digits of an id, in lower case.
#[derive(Debug)]
pub(super) struct ShortId(String);

impl ShortId {
    /// Reads them, with or without the prefix of the id.
    pub(super) fn parse(text: &str, prefix: &str, list: &str) -> Result<Self, ApiError> {
        let digits = text.strip_prefix(prefix).unwrap_or(text);
        if !(MIN_DIGITS..=32).contains(&digits.len())
            || !digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        {
            let shown: String = text.chars().take(64).collect();
            return Err(ApiError::invalid(format!(
                "{shown:?} is not an id; write the whole id ({prefix}…) or at least the last {MIN_DIGITS} of its digits. \
                 {list} lists the ids"
            )));
        }
        Ok(Self(digits.to_ascii_lowercase()))
    }

    /// Its whole bytes; one digit more may stand before them.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let pairs = self.0.as_bytes().rchunks_exact(2).rev();
        let pairs = pairs.filter_map(|pair| std::str::from_utf8(pair).ok());
        pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
    }

    pub(super) fn is_end_of(&self, id: &impl ToString) -> bool {
        id.to_string().ends_with(&self.0)
    }

    /// The only one of these ids that end with the digits, if there is one.
    pub(super) fn only<T: ToString>(&self, mut ids: Vec<T>) -> Result<Option<T>, ApiError> {
        if ids.len() < 2 {
            return Ok(ids.pop());
        }
        let mut named: Vec<String> = ids.iter().take(NAMED).map(T::to_string).collect();
        named.extend((ids.len() > NAMED).then(|| "…".to_owned()));
        let named = named.join(", ");
        Err(ApiError::invalid(format!("{} may be any of {named}; write more of it", self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::id::ApprovalId;

    fn parse(text: &str) -> Result<ShortId, ApiError> {
        ShortId::parse(text, "appr_", "gantry approvals")
    }

    #[test]
    fn apr_6_a_part_of_an_id_is_enough_if_it_means_one() {
        let ids = ["appr_0193aaaaaaaaaaaaaaaaaaaaaaaa1111", "appr_0194aaaaaaaaaaaaaaaaaaaaaaaa1111"]
            .map(|id| id.parse::<ApprovalId>().unwrap());
        let short = parse("appr_AA1111").unwrap();
        assert_eq!(short.bytes(), [0xaa, 0x11, 0x11]);
        assert!(short.is_end_of(&ids[0]) && !parse("0193aa").unwrap().is_end_of(&ids[0]));
        assert_eq!(parse("baa1111").unwrap().bytes(), [0xaa, 0x11, 0x11]);
        assert!(!parse("baa1111").unwrap().is_end_of(&ids[0]));
        assert_eq!(short.only(ids[..1].to_vec()).unwrap(), Some(ids[0]));
        assert_eq!(short.only(ids[..0].to_vec()).unwrap(), None);
        let error = format!("{:?}", short.only(ids.to_vec()).unwrap_err());
        assert!(ids.iter().all(|id| error.contains(&id.to_string())), "{error}");
        for text in ["appr_", "0193a", "0193ag", "..", "", &"a".repeat(33)] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
