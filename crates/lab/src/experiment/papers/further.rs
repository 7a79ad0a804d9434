//! Curves that are in no paper: balancers and schedulers of other papers and of today where the papers' are drawn. Each figure's are a file of
//! [one's own](super::own), which can be measured by itself, too.

use super::own;
use super::{Item, Job, Paper};
use equipoise::error::Result;

/// Paper, figure and description.
const FILES: [(Paper, u32, &str); 30] = [
    (Paper::Hierarchical, 6, include_str!("../../../../../scripts/figures/further/ahmad-6.toml")),
    (Paper::Hierarchical, 7, include_str!("../../../../../scripts/figures/further/ahmad-7.toml")),
    (Paper::Hierarchical, 8, include_str!("../../../../../scripts/figures/further/ahmad-8.toml")),
    (Paper::Hierarchical, 9, include_str!("../../../../../scripts/figures/further/ahmad-9.toml")),
    (Paper::Hierarchical, 10, include_str!("../../../../../scripts/figures/further/ahmad-10.toml")),
    (Paper::Hierarchical, 11, include_str!("../../../../../scripts/figures/further/ahmad-11.toml")),
    (Paper::Hierarchical, 12, include_str!("../../../../../scripts/figures/further/ahmad-12.toml")),
    (Paper::Hierarchical, 13, include_str!("../../../../../scripts/figures/further/ahmad-13.toml")),
    (Paper::Hierarchical, 14, include_str!("../../../../../scripts/figures/further/ahmad-14.toml")),
    (Paper::Hierarchical, 15, include_str!("../../../../../scripts/figures/further/ahmad-15.toml")),
    (Paper::Hierarchical, 16, include_str!("../../../../../scripts/figures/further/ahmad-16.toml")),
    (Paper::Sash, 2, include_str!("../../../../../scripts/figures/further/hamidzadeh-2.toml")),
    (Paper::Sash, 3, include_str!("../../../../../scripts/figures/further/hamidzadeh-3.toml")),
    (Paper::Sash, 4, include_str!("../../../../../scripts/figures/further/hamidzadeh-4.toml")),
    (Paper::Sash, 5, include_str!("../../../../../scripts/figures/further/hamidzadeh-5.toml")),
    (Paper::Sash, 6, include_str!("../../../../../scripts/figures/further/hamidzadeh-6.toml")),
    (Paper::Sash, 7, include_str!("../../../../../scripts/figures/further/hamidzadeh-7.toml")),
    (Paper::Sash, 8, include_str!("../../../../../scripts/figures/further/hamidzadeh-8.toml")),
    (Paper::Sash, 9, include_str!("../../../../../scripts/figures/further/hamidzadeh-9.toml")),
    (Paper::Sash, 10, include_str!("../../../../../scripts/figures/further/hamidzadeh-10.toml")),
    (Paper::Sash, 11, include_str!("../../../../../scripts/figures/further/hamidzadeh-11.toml")),
    (Paper::Sash, 12, include_str!("../../../../../scripts/figures/further/hamidzadeh-12.toml")),
    (Paper::Sash, 13, include_str!("../../../../../scripts/figures/further/hamidzadeh-13.toml")),
    (Paper::Psts, 4, include_str!("../../../../../scripts/figures/further/psts-4.toml")),
    (Paper::Psts, 5, include_str!("../../../../../scripts/figures/further/psts-5.toml")),
    (Paper::Psts, 6, include_str!("../../../../../scripts/figures/further/psts-6.toml")),
    (Paper::Wu, 14, include_str!("../../../../../scripts/figures/further/wu-14.toml")),
    (Paper::Wu, 15, include_str!("../../../../../scripts/figures/further/wu-15.toml")),
    (Paper::Wu, 16, include_str!("../../../../../scripts/figures/further/wu-16.toml")),
    (Paper::Wu, 17, include_str!("../../../../../scripts/figures/further/wu-17.toml")),
];

impl Paper {
    /// Further curves of its figures.
    ///
    /// # Errors
    /// If a description is wrong.
    pub fn further(self) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for (_, figure, text) in FILES.iter().filter(|(paper, ..)| *paper == self) {
            let described = own::parse(&format!("of figure {figure}"), text)?;
            jobs.extend(described.jobs.into_iter().map(|job| Job { item: Item::Figure(*figure), ..job }));
        }
        Ok(jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Effort, Measuring, measure};
    use super::*;

    #[test]
    fn every_figure_with_further_curves_is_one_of_the_paper() {
        for paper in Paper::ALL {
            let study = paper.study();
            for job in paper.further().unwrap() {
                assert!(study.jobs.iter().any(|own| own.item == job.item), "{paper:?} {}", job.item);
            }
        }
        // Of the cheapest figure also the numbers: who gives away foreign tasks first moves as few as possible, and a positional scan does not.
        let few: Vec<Job> = Paper::Wu.further().unwrap().into_iter().filter(|job| job.item == Item::Figure(14) && job.x == 10.0).collect();
        let points = measure(Paper::Wu, &few, &Measuring::new(Effort::Cases(5), 1), |_| {}).unwrap();
        let at = |name: &str| points.0.iter().find(|point| point.curve.starts_with(name)).unwrap().value;
        assert!(at("optimal") == 0.0 && at("kwa") == 0.0 && at("psts") > 0.0, "{points:?}");
    }
}
