//! Names: readable, short enough, unique, and the same in every order.

use super::*;
use proptest::prelude::*;

fn named(id: &'static str, path: &'static str) -> Origin<'static> {
    Origin { method: Method::Get, path, given: None, id: (!id.is_empty()).then_some(id) }
}

#[track_caller]
fn check(origins: &[Origin<'_>], expected: &[&str]) {
    assert_eq!(assign(origins, 0, &BTreeSet::new()), expected);
}

#[test]
fn a_name_comes_from_the_extension_or_the_id_or_the_path() {
    check(&[Origin { given: Some("look it up"), ..named("x", "/a") }], &["look_it_up"]);
    check(&[named("repos/list-for.user", "/a")], &["repos_list_for_user"]);
    check(&[named("  Keep_Case__here! ", "/a")], &["Keep_Case__here"]);
    check(&[named("", "/repos/{owner}/{repo}")], &["get_repos_owner_repo"]);
    check(&[named("", "/")], &["get_root"]);
    check(&[named("列表", "/a/{b}.json")], &["get_a_b_json"]);
    check(&[Origin { method: Method::Delete, ..named("", "/a-b//c") }], &["delete_a_b_c"]);
}

#[test]
fn a_long_name_is_cut_at_a_word_and_distinguished() {
    let id = "organizations_list_all_members_of_every_single_team_there_is";
    let names = assign(&[named(id, "/a"), named(id, "/b")], 0, &BTreeSet::new());
    for name in &names {
        assert!(name.starts_with("organizations_list_all_members_of_every_"), "{name}");
        assert!(name.len() <= 48, "{name}");
    }
    assert_ne!(names[0], names[1]);
    let name = assign(&[named("a".repeat(300).leak(), "/a")], 30, &BTreeSet::new()).remove(0);
    assert_eq!(name.len(), 30);
    // A limit that leaves no room is not taken at its word.
    let name = assign(&[named(id, "/a")], 3, &BTreeSet::new()).remove(0);
    assert!((10..=24).contains(&name.len()), "{name}");
}

#[test]
fn all_that_clash_are_distinguished() {
    let names = assign(&[named("list", "/a"), named("List", "/b"), named("get", "/c")], 0, &BTreeSet::new());
    assert!(names[0].starts_with("list_") && names[0].len() == 11, "{names:?}");
    assert!(names[1].starts_with("List_") && names[1].len() == 11, "{names:?}");
    assert_eq!(names[2], "get");

    let taken = BTreeSet::from(["GET".to_owned()]);
    let names = assign(&[named("get", "/c"), named("put", "/c")], 0, &taken);
    assert!(names[0].starts_with("get_") && names[1] == "put", "{names:?}");
}

#[test]
fn a_name_that_looks_like_a_distinguished_one_does_not_take_it() {
    let first = assign(&[named("list", "/a"), named("list", "/b")], 0, &BTreeSet::new());
    let copy = Origin { method: Method::Get, path: "/c", given: None, id: Some(&first[0]) };
    let names = assign(&[named("list", "/a"), named("list", "/b"), copy], 0, &BTreeSet::new());
    let unique: BTreeSet<&String> = names.iter().collect();
    assert_eq!(unique.len(), 3, "{names:?}");
    assert_eq!(names[1], first[1], "only what clashes changes");
}

proptest! {
    #[test]
    fn names_are_unique_short_and_the_same_in_any_order(
        paths in proptest::collection::btree_map("/[a-c]{1,3}(/\\{[ab]\\})?", "[abAB./ ]{0,60}", 1..40),
        chars in 24usize..60,
        seed in any::<usize>(),
    ) {
        let origins: Vec<Origin<'_>> = paths
            .iter()
            .map(|(path, id)| Origin { method: Method::Get, path, given: None, id: Some(id) })
            .collect();
        let names = assign(&origins, chars, &BTreeSet::new());
        let unique: BTreeSet<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        prop_assert_eq!(unique.len(), names.len());
        prop_assert!(names.iter().all(|name| name.len() <= chars && !name.is_empty()));

        let mut shuffled: Vec<(Origin<'_>, String)> = origins.into_iter().zip(names).collect();
        let turn = seed % shuffled.len();
        shuffled.rotate_left(turn);
        shuffled.reverse();
        let (origins, names): (Vec<_>, Vec<_>) = shuffled.into_iter().unzip();
        prop_assert_eq!(assign(&origins, chars, &BTreeSet::new()), names);
    }
}
