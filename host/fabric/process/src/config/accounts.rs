//! Users and groups of this machine, as `/etc/passwd` and `/etc/group` have them. Those of a directory service are in neither: their
//! numbers are given.

use std::collections::BTreeSet;

/// What the two files say.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    passwd: String,
    group: String,
}

impl Accounts {
    /// Reads the files. One that cannot be read has nobody.
    pub(super) fn read() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Accounts { passwd: read("/etc/passwd"), group: read("/etc/group") }
    }

    /// The first line of that name counts, as for the C library.
    pub(super) fn user(&self, name: &str) -> Option<u32> {
        self.users().find(|user| user.name == name).map(|user| user.number)
    }

    /// The users of a group: those whom it names, and those of whom it is the first.
    pub(super) fn users_of_name(&self, name: &str) -> Option<Vec<u32>> {
        self.users_of(|fields| fields.first() == Some(&name))
    }

    /// As [`Accounts::users_of_name`], of the group of a number.
    pub(super) fn users_of_number(&self, number: u32) -> Option<Vec<u32>> {
        self.users_of(|fields| fields.get(2).and_then(|field| field.parse().ok()) == Some(number))
    }

    fn users_of(&self, is_it: impl Fn(&[&str]) -> bool) -> Option<Vec<u32>> {
        let fields: Vec<&str> = self
            .group
            .lines()
            .map(|line| line.split(':').collect())
            .find(|fields: &Vec<&str>| is_it(fields))?;
        let number: u32 = fields.get(2)?.parse().ok()?;
        let named = fields.get(3).into_iter().flat_map(|names| names.split(','));
        let named = named.filter_map(|name| self.user(name.trim()));
        let first = self.users().filter(|user| user.group == number).map(|user| user.number);
        Some(named.chain(first).collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn users(&self) -> impl Iterator<Item = User<'_>> {
        self.passwd.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let number = |at: usize| fields.get(at)?.parse().ok();
            Some(User { name: fields[0], number: number(2)?, group: number(3)? })
        })
    }
}

struct User<'a> {
    name: &'a str,
    number: u32,
    /// The group that is its first.
    group: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_found_by_name_and_number_and_other_lines_say_nothing() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\n\nodd\nalice:x:1001:100::/home/a:/bin/sh\nbob:x:1002:1002::/:\n";
        let group = "root:x:0:\nusers:x:100:bob,nobody-knows, root\n+\nempty:x:7:\n";
        let accounts = Accounts { passwd: passwd.to_owned(), group: group.to_owned() };
        assert_eq!(
            ["root", "alice", "odd", ""].map(|name| accounts.user(name)),
            [Some(0), Some(1001), None, None]
        );
        assert_eq!(accounts.users_of_name("users"), Some(vec![0, 1001, 1002]));
        assert_eq!(accounts.users_of_number(100), Some(vec![0, 1001, 1002]));
        assert_eq!(accounts.users_of_name("empty"), Some(Vec::new()));
        assert_eq!((accounts.users_of_name("x"), accounts.users_of_number(1001)), (None, None));
    }
}
