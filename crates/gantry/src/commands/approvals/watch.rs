//! `gantry approvals watch`: what waits now, then every new request and what becomes of it; on a terminal, one question
//! after the other.

use super::ask::{Asked, Otherwise, ask};
use super::decision::{Decision, Given};
use super::find::{self, WAITING, Wanted};
use super::item::Item;
use super::keyboard::{Keyboard, Typed};
use super::{decide, words};
use crate::client::{ApiClient, CommandContext, Scope, query};
use crate::exit::Outcome;
use crate::term;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// How often it is looked what became of those that wait.
const LOOK: Duration = Duration::from_millis(500);

/// How long the API waits for a request where none waits, in seconds. Calls that only wait for their time are no requests,
/// and are seen with the next look.
const QUIET_SECONDS: &str = "5";

pub(super) async fn run(context: CommandContext, project: Option<&str>) -> anyhow::Result<Outcome> {
    let json = context.json;
    let asks = !json && term::is_interactive();
    // Whoever decides here may have to run the call here too, with the servers of its project.
    let client =
        if asks { context.connect(Scope::All).await? } else { context.connect(Scope::LedgerOnly).await? };
    let mut watch = Watch { client: &client, project, json, known: HashMap::new(), waiting: VecDeque::new() };
    let done = watch.follow(asks).await;
    client.close().await;
    done
}

struct Watch<'a> {
    client: &'a ApiClient,
    project: Option<&'a str>,
    json: bool,
    /// The last known state of each request that is not over.
    known: HashMap<String, String>,
    /// Those that the person has not been asked about yet.
    waiting: VecDeque<String>,
}

impl Watch<'_> {
    async fn follow(&mut self, asks: bool) -> anyhow::Result<Outcome> {
        let mut keyboard = Keyboard::new()?;
        self.look().await?;
        if self.known.is_empty() && !self.json {
            term::eprint("Nothing waits now. Ctrl-C ends.");
        }
        loop {
            while asks && let Some(id) = self.waiting.pop_front() {
                if !self.question(&id, &mut keyboard).await? {
                    return Ok(Outcome::Success);
                }
                self.look().await?;
            }
            tokio::select! {
                changed = self.may_have_changed() => changed?,
                () = keyboard.interrupted() => return Ok(Outcome::Success),
            }
            self.look().await?;
            // Whoever read this has seen enough.
            if term::stdout_error().is_some() {
                return Ok(Outcome::Success);
            }
        }
    }

    /// Returns when it is time for another look: when something waits that did not, or after a moment.
    async fn may_have_changed(&self) -> anyhow::Result<()> {
        if !self.known.is_empty() {
            tokio::time::sleep(LOOK).await;
            return Ok(());
        }
        let project = self.project;
        let [pending, _] = WAITING;
        let query = query(&[
            ("state", Some(pending)),
            ("project", project),
            ("limit", Some("1")),
            ("wait", Some(QUIET_SECONDS)),
        ]);
        let answer =
            self.client.send(http::Method::GET, &format!("/api/v1/approvals{query}"), String::new()).await?;
        answer.into_result::<serde_json::Value>().map(drop)
    }

    /// Tells what is new since the last look.
    async fn look(&mut self) -> anyhow::Result<()> {
        let project = self.project;
        let mut listed = Vec::new();
        for state in WAITING {
            listed.extend(find::all(self.client, Wanted { state: Some(state), project, call: None }).await?);
        }
        listed.sort_by(|a, b| a.said("/createdAt").cmp(b.said("/createdAt")));
        let is_listed = |id: &String| listed.iter().any(|item| item.id() == id);
        let gone: Vec<String> = self.known.keys().filter(|id| !is_listed(id)).cloned().collect();
        for id in gone {
            self.tell(&Item::get(self.client, &id).await?);
        }
        listed.iter().for_each(|item| self.tell(item));
        Ok(())
    }

    /// Tells how a request stands, if that is new.
    fn tell(&mut self, item: &Item) {
        let before = self.known.insert(item.id().to_owned(), item.state().to_owned());
        if item.is_over() {
            self.known.remove(item.id());
        }
        if before.as_deref() == Some(item.state()) {
            return;
        }
        if item.is_pending() {
            self.waiting.push_back(item.id().to_owned());
        }
        term::print(&if self.json { item.text.clone() } else { line(item) });
    }

    /// Asks about one request; false if the person wants to stop.
    async fn question(&mut self, id: &str, keyboard: &mut Keyboard) -> anyhow::Result<bool> {
        let item = Item::get(self.client, id).await?;
        if !item.is_pending() {
            return Ok(true);
        }
        loop {
            match ask(self.client, &item, keyboard, Otherwise::Skip).await? {
                Asked::Said(decision) if !self.decided(&decision, id).await? => {}
                Asked::Said(_) | Asked::Left => return Ok(true),
                Asked::Interrupted => return Ok(false),
                Asked::Overtaken(item) => {
                    self.tell(&item);
                    // What is being typed now was meant for this request, and must not decide about the next one.
                    term::prompt("It waits for nobody any more. Press Enter to go on.");
                    return Ok(matches!(keyboard.typed().await?, Typed::Line(_)));
                }
            }
        }
    }

    /// Gives a decision; false if it could not be given like that and the question stands.
    async fn decided(&mut self, decision: &Decision, id: &str) -> anyhow::Result<bool> {
        match decision.give(self.client, id).await? {
            Given::Stands(item) => self.tell(&item),
            Given::Refused(answer) => drop(decide::refused(&answer, false)),
            Given::Invalid(answer) => {
                decide::refused(&answer, false);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// How a request stands, on one line.
fn line(item: &Item) -> String {
    let (at, more) = match item.state() {
        "PENDING_APPROVAL" => ("/createdAt", format!("by {}: {}", item.who(), item.said("/reason"))),
        "SCHEDULED_FOR_EXECUTION" => ("/decidedAt", item.due()),
        _ => ("/decidedAt", item.decided().unwrap_or_else(|| item.said("/message").to_owned())),
    };
    let at = match item.said(at) {
        "" => item.said("/createdAt"),
        at => at,
    };
    let line = format!(
        "{}  {:9}  {}  {}  {more}",
        term::timestamp(at),
        words::state(item.state()),
        item.id(),
        item.tool()
    );
    term::sanitize(line.trim_end())
}
