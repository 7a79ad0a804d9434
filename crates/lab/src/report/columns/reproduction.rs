//! The columns of a paper's figures against ours.

use super::{Column, Tabular};
use crate::experiment::ahmad1994::AhmadPoint;
use crate::experiment::hamidzadeh1995::{HamidzadehPoint, HamidzadehQuantity};
use crate::experiment::wu1997::{WuPoint, WuQuantity};

fn verdict(agrees: bool) -> String {
    if agrees { "agrees" } else { "DIFFERS" }.into()
}

fn interval([low, high]: [f64; 2]) -> String {
    format!("{low:.3}-{high:.3}")
}

fn expected(expected: f64, tolerance: f64) -> String {
    format!("{expected:.3} ± {tolerance:.3}")
}

impl Tabular for WuPoint {
    fn columns() -> Vec<Column<WuPoint>> {
        let shown = Column::<WuPoint>::shown;
        vec![
            shown("figure", |point| point.figure.to_string()).left(),
            shown("balancer", |point| point.balancer.to_string()).left(),
            shown("topology", |point| point.topology.to_string()).left(),
            shown("quantity", |point| {
                match point.quantity {
                    WuQuantity::Balanced => "balanced",
                    WuQuantity::Locality => "excess moved",
                    WuQuantity::Cost => "excess hops",
                }
                .into()
            })
            .left(),
            shown("mean load", |point| point.mean_load.to_string()),
            shown("cases", |point| point.counted.to_string()),
            shown("measured", |point| format!("{:.3}", point.measured)),
            shown("95 % CI", |point| interval(point.ci95)),
            shown("expected", |point| expected(point.expected, point.tolerance)),
            shown("verdict", |point| verdict(point.agrees)),
        ]
    }
}

impl Tabular for HamidzadehPoint {
    fn columns() -> Vec<Column<HamidzadehPoint>> {
        let shown = Column::<HamidzadehPoint>::shown;
        vec![
            shown("figure", |point| point.figure.to_string()).left(),
            shown("quantity", |point| {
                match point.quantity {
                    HamidzadehQuantity::Dss => "total time of dss",
                    HamidzadehQuantity::Sash => "total time of sash",
                    HamidzadehQuantity::Crossover => "crossover",
                }
                .into()
            })
            .left(),
            shown("processors", |point| point.processors.map_or(String::new(), |processors| processors.to_string())),
            shown("seeds", |point| point.seeds.to_string()),
            shown("measured", |point| rounded(Some(point.measured))),
            shown("expected", |point| rounded(point.expected)),
            shown("tolerance", |point| rounded(Some(point.tolerance))),
            shown("paper", |point| rounded(point.paper)),
            shown("verdict", |point| verdict(point.agrees)),
        ]
    }
}

fn rounded(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| format!("{value:.0}"))
}

impl Tabular for AhmadPoint {
    fn columns() -> Vec<Column<AhmadPoint>> {
        let shown = Column::<AhmadPoint>::shown;
        vec![
            shown("figure", |point| if point.limit { "limit" } else { point.figure }.to_string()).left(),
            shown("scheduler", |point| point.scheduler.to_string()).left(),
            shown("levels", |point| point.levels.to_string()),
            shown("children", |point| point.children.to_string()),
            shown("utilisation", |point| point.utilisation.to_string()),
            shown("rate", |point| if point.rate == 0 { "none".into() } else { point.rate.to_string() }),
            shown("graphs", |point| point.graphs.to_string()),
            shown("response", |point| format!("{:.3}", point.measured)),
            shown("95 % CI", |point| interval(point.ci95)),
            shown("expected", |point| expected(point.expected, point.tolerance)),
            shown("verdict", |point| verdict(point.agrees)),
        ]
    }
}
