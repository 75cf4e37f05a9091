//! What to cover in a workspace, found anew for each job, because what is protected comes and goes.

use super::stand_in::{self, EMPTY, Made, StandIn};
use super::trail::{self, Step};
use super::{Access, Cover, How, JailError, Site, git, place, unprotected, unusable, words};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Covers of one workspace; each is a mount.
const MOST_COVERS: usize = 512;
/// How often a path is looked at anew because it came to be in between.
const ATTEMPTS: usize = 3;

/// Something protected: how, and what stands in for it.
struct Want {
    path: PathBuf,
    how: How,
    stand_in: StandIn,
}

/// What was found: covers by their path, so that a folder comes before what is in it.
#[derive(Debug, Default)]
pub(super) struct Survey {
    covers: BTreeMap<PathBuf, (How, bool)>,
}

impl Survey {
    /// Looks whether a workspace can be secured at all.
    pub(super) fn look(site: &Site, access: Access) -> Result<(), JailError> {
        for want in wants(site, access)? {
            want.steps(site)?;
        }
        Ok(())
    }

    /// Puts stand-ins where they are needed, and says what to cover.
    pub(super) fn secure(site: &Site, access: Access) -> Result<Vec<Cover>, JailError> {
        if access == Access::Write {
            git::prepare(site);
        }
        let mut survey = Self::default();
        for want in wants(site, access)? {
            survey.take(site, &want)?;
        }
        // What is mounted below it may be the machine's. Where mounts are not carried along, what lies under them shows.
        for (path, is_dir) in place::mounts(site)? {
            survey.cover(path, How::Hide, is_dir);
        }
        let covers = survey.ordered();
        if covers.len() > MOST_COVERS {
            let reason = format!(
                "more than {MOST_COVERS} paths in it are protected or mounted; protect folders instead"
            );
            return Err(unusable(&site.path, &reason));
        }
        Ok(covers)
    }

    /// Takes the stand-ins away, and says what is the matter with the first that cannot be. Only for whoever is alone.
    pub(super) fn tidy(site: &Site) -> Result<(), JailError> {
        let mut wants = configured(site, Access::Write);
        let found = of_git(site).map(|more| wants.extend(more));
        // None of them keeps the others in place.
        wants.iter().map(|want| want.tidy(site)).fold(found, Result::and)
    }

    fn take(&mut self, site: &Site, want: &Want) -> Result<(), JailError> {
        for _ in 0..ATTEMPTS {
            let mut missing = None;
            for step in want.steps(site)? {
                match step {
                    Step::Passed(path) => self.cover(path, How::Pin, true),
                    Step::Link(path) => self.cover(path, How::Hide, false),
                    Step::Found { path, is_dir } => self.cover(path, want.how, is_dir),
                    Step::Missing { path, is_last } => missing = Some((path, is_last)),
                    Step::Around => {}
                }
            }
            let Some((path, is_last)) = missing else { return Ok(()) };
            if self.stand_in(site, want, path, is_last)? {
                return Ok(());
            }
        }
        Err(unprotected(&want.path, &"it keeps being made and removed; try again"))
    }

    /// Puts a stand-in there; says no if by now there is something else.
    fn stand_in(
        &mut self,
        site: &Site,
        want: &Want,
        path: PathBuf,
        is_last: bool,
    ) -> Result<bool, JailError> {
        let stand_in = if is_last { want.stand_in } else { StandIn::Folder };
        match stand_in.make(site, &path) {
            Ok(Made::Taken) => return Ok(false),
            Ok(Made::Stands { is_dir }) => self.cover(path, want.how, is_dir),
            Ok(Made::Barred) => {}
            // Gantry has no right to make anything there now, but a job could take it.
            Err(Errno::ACCESS) if let Some(folder) = above(&path) => {
                self.cover(folder.to_owned(), want.how, true);
            }
            Err(error) => {
                let reason = format!(
                    "it is missing, and a job that makes it cannot be stopped: {}; make it yourself, or use a workspace \
                     on another file system",
                    words(error, &site.path)
                );
                return Err(unprotected(&site.path.join(&path), &reason));
            }
        }
        Ok(true)
    }

    fn cover(&mut self, path: PathBuf, how: How, is_dir: bool) {
        let cover = self.covers.entry(path).or_insert((how, is_dir));
        *cover = (how.max(cover.0), is_dir);
    }

    /// The covers in their order, without those that others make superfluous.
    fn ordered(self) -> Vec<Cover> {
        let above = |path: &Path| {
            let ancestors = path.ancestors().skip(1);
            ancestors.filter_map(|above| self.covers.get(above)).map(|(how, _)| *how).max()
        };
        let is_needed = |(path, (how, _)): &(&PathBuf, &(How, bool))| match above(path) {
            Some(How::Hide) => false,
            // In what is read-only nothing can be moved or changed, only read.
            Some(How::Seal) => *how == How::Hide,
            Some(How::Pin) | None => true,
        };
        let needed = self.covers.iter().filter(is_needed);
        needed.map(|(path, (how, is_dir))| Cover { path: path.clone(), how: *how, is_dir: *is_dir }).collect()
    }
}

impl Want {
    /// The way to it; a workspace that is itself protected cannot be worked in.
    fn steps(&self, site: &Site) -> Result<Vec<Step>, JailError> {
        let steps = trail::follow(site, &self.path)?;
        if steps.contains(&Step::Around) {
            let reason = format!(
                "it is in {}, which belongs to Gantry itself; choose another workspace",
                self.path.display()
            );
            return Err(unusable(&site.path, &reason));
        }
        Ok(steps)
    }

    /// Takes away what stands in for it, or on the way to it.
    fn tidy(&self, site: &Site) -> Result<(), JailError> {
        let touched = self.steps(site)?.into_iter().filter_map(|step| match step {
            // Somebody may have put something into a folder that stood in.
            Step::Missing { path, .. } | Step::Passed(path) | Step::Found { path, is_dir: true } => {
                Some(path)
            }
            Step::Link(_) | Step::Found { is_dir: false, .. } | Step::Around => None,
        });
        let removed = touched.map(|path| {
            let at = site.path.join(&path);
            let folder = at.parent().unwrap_or(&site.path);
            stand_in::remove(site, &path).map_err(|error| unprotected(&at, &words(error, folder)))
        });
        removed.fold(Ok(()), Result::and)
    }
}

/// The folder of the workspace that holds a path, unless that is the workspace itself.
fn above(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty())
}

/// All that is protected.
fn wants(site: &Site, access: Access) -> Result<Vec<Want>, JailError> {
    let mut wants = configured(site, access);
    if access == Access::Write {
        wants.extend(of_git(site)?);
    }
    Ok(wants)
}

/// What is protected because Gantry was told so. Who only reads can change nothing, so for that only what is hidden counts.
fn configured(site: &Site, access: Access) -> Vec<Want> {
    let protected = &site.protected;
    let hidden = |path: &PathBuf| {
        let stand_in = if path.extension().is_some() { StandIn::File(EMPTY) } else { StandIn::Folder };
        Want { path: path.clone(), how: How::Hide, stand_in }
    };
    let mut wants: Vec<Want> = protected.hidden.iter().map(hidden).collect();
    if access == Access::Write {
        wants.extend(protected.sealed.iter().map(|path| seal(path.clone(), StandIn::Socket)));
        wants.extend(protected.folders.iter().map(|path| seal(path.clone(), StandIn::Folder)));
    }
    wants
}

/// What is protected because git runs what it says.
fn of_git(site: &Site) -> Result<impl Iterator<Item = Want>, JailError> {
    Ok(git::sealed(site)?.into_iter().map(|(path, stand_in)| seal(path, stand_in)))
}

fn seal(path: PathBuf, stand_in: StandIn) -> Want {
    Want { path, how: How::Seal, stand_in }
}
