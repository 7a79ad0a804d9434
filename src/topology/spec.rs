//! The specification of a topology, and the canonical name that reads back.

use std::sync::Arc;

use super::lattice::joined;
use super::{Complete, Graph, Grid, Hypercube, InvalidTopology, Kind, Line, MAX_NODES, Mesh, NodeId, Topology, Tree};
use crate::spec::{Options, Spec, shown};

impl Topology {
    /// Reads `hypercube[:D] | mesh[:RxC..] | torus[:RxC..] | tree[:binary | :kary=K | :parents=-,0,1,1,..] | grid[:PxQ..] | line[:N] |
    /// ring[:N] | complete[:N] | graph:edges=0-1,1-2,..`.
    ///
    /// Without a size it is fitted to `ranks`, see [`Topology::fitted`]. Heap-shaped trees have `ranks` nodes unless `,nodes=N` follows.
    /// The root's parent is `-` or `-1`. Whether a topology of given size suits the ranks is [`super::Placement::new`]'s to say.
    ///
    /// # Errors
    /// [`InvalidTopology::Spec`] if the kind or an option is unknown, or a value is missing or no number.
    /// [`InvalidTopology::NoRanks`] and [`InvalidTopology::TooManyNodes`] where it is fitted to no ranks, or to too many; otherwise as the
    /// functions that make each kind.
    pub fn parse(text: &str, ranks: u32) -> Result<Topology, InvalidTopology> {
        let spec = Spec::parse(InvalidTopology::SUBJECT, text)?;
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.as_str() == spec.name()) else {
            return Err(spec.unknown(Kind::ALL.iter().map(|kind| kind.as_str())).into());
        };
        if kind != Kind::Graph && !text.contains(':') {
            check_ranks(text, ranks)?;
            return Ok(Topology::fitted(kind, ranks));
        }
        spec.build(|options| sized(text, kind, options, ranks))
    }

    /// The file that a specification `graph:FILE` names. Files are not read here: see [`Topology::graph`].
    pub fn graph_file(spec: &str) -> Option<&str> {
        spec.strip_prefix("graph:").filter(|source| !source.is_empty() && !source.starts_with("edges="))
    }

    /// The graph of an edge list, the text of a file of this name; see [`Graph::read`].
    ///
    /// # Errors
    /// One sentence with the file and the line.
    pub fn graph(file: &str, text: &str) -> Result<Topology, InvalidTopology> {
        Ok(Topology::Graph(Arc::new(Graph::read(file, text)?)))
    }

    /// The canonical specification, with its size: [`Topology::parse`] reads it back to an equal topology on any number of ranks. A graph that
    /// came from a file names the file.
    pub fn name(&self) -> String {
        let kind = self.kind();
        match self {
            Topology::Hypercube(cube) => format!("{kind}:{}", cube.dimension()),
            Topology::Mesh(mesh) => format!("{kind}:{}", joined(mesh.dims())),
            Topology::Grid(grid) => format!("{kind}:{}", joined(grid.dims())),
            Topology::Line(_) | Topology::Complete(_) => format!("{kind}:{}", self.nodes()),
            Topology::Graph(graph) => format!("{kind}:{}", graph.source()),
            Topology::Tree(tree) => match tree.arity() {
                Some(2) => format!("{kind}:binary,nodes={}", tree.nodes()),
                Some(arity) => format!("{kind}:kary={arity},nodes={}", tree.nodes()),
                None => {
                    let parents: Vec<String> =
                        tree.parents().map(|parent| parent.map_or("-".into(), |parent| parent.to_string())).collect();
                    format!("{kind}:parents={}", parents.join(","))
                }
            },
        }
    }
}

impl From<Topology> for String {
    fn from(topology: Topology) -> String {
        match topology {
            Topology::Graph(graph) => format!("{}:{}", Kind::Graph, graph.edges()),
            other => other.name(),
        }
    }
}

/// Reads a canonical name, which has its size with it; one without a size is refused, since the ranks are not known here.
impl TryFrom<String> for Topology {
    type Error = InvalidTopology;

    fn try_from(name: String) -> Result<Topology, InvalidTopology> {
        Topology::parse(&name, 0)
    }
}

impl std::fmt::Display for Topology {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.name())
    }
}

/// Fitting needs ranks to fit to, and no more of them than a topology may have nodes.
fn check_ranks(spec: &str, ranks: u32) -> Result<(), InvalidTopology> {
    match ranks {
        0 => Err(InvalidTopology::NoRanks),
        n if n > MAX_NODES => Err(too_many(spec)),
        _ => Ok(()),
    }
}

fn too_many(spec: &str) -> InvalidTopology {
    InvalidTopology::TooManyNodes { spec: shown(spec) }
}

fn sized(spec: &str, kind: Kind, options: &mut Options<'_>, ranks: u32) -> Result<Topology, InvalidTopology> {
    let number = |options: &mut Options<'_>, what| {
        let text = options.required("N")?;
        number(spec, options, what, text)
    };
    Ok(match kind {
        Kind::Hypercube => match number(options, "dimension") {
            Err(InvalidTopology::TooManyNodes { spec }) => {
                return Err(InvalidTopology::TooManyDimensions { spec });
            }
            dimension => Topology::Hypercube(Hypercube::new(dimension?)?),
        },
        Kind::Mesh => Topology::Mesh(Mesh::new(&sides(spec, options)?, false)?),
        Kind::Torus => Topology::Mesh(Mesh::new(&sides(spec, options)?, true)?),
        Kind::Ring => Topology::Mesh(Mesh::new(&[number(options, "the number of nodes")?], true)?),
        Kind::Grid => Topology::Grid(Grid::new(&sides(spec, options)?)?),
        Kind::Line => Topology::Line(Line::new(number(options, "the number of nodes")?)?),
        Kind::Complete => Topology::Complete(Complete::new(number(options, "the number of nodes")?)?),
        Kind::Tree => Topology::Tree(Arc::new(tree(spec, options, ranks)?)),
        Kind::Graph => match options.list("edges")? {
            Some(edges) => Topology::graph(&format!("edges={}", edges.join(",")), &edges.join("\n").replace('-', " "))?,
            None => {
                let why = "its file has to be read first, as in graph:net.txt, or edges are given, as in graph:edges=0-1,1-2";
                return Err(options.conflict(why).into());
            }
        },
    })
}

/// A whole number that fits; `what` says what it counts.
fn number(spec: &str, options: &Options<'_>, what: &'static str, text: &str) -> Result<u32, InvalidTopology> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(options.wrong(what, text, "a whole number").into());
    }
    // Digits only fail to parse when they are too many.
    text.parse().map_err(|_| too_many(spec))
}

fn sides(spec: &str, options: &mut Options<'_>) -> Result<Vec<u32>, InvalidTopology> {
    let sides = options.required("RxC")?;
    sides.split('x').map(|side| number(spec, options, "each side", side)).collect()
}

fn tree(spec: &str, options: &mut Options<'_>, ranks: u32) -> Result<Tree, InvalidTopology> {
    let (parents, is_binary, arity) = (options.list("parents")?, options.flag("binary")?, options.value("kary")?);
    let nodes = options.value("nodes")?;
    let arity = match (parents, is_binary, arity) {
        (Some(parents), false, None) if nodes.is_none() => {
            let parents: Result<Vec<Option<NodeId>>, _> = parents.into_iter().map(|entry| parent(spec, options, entry)).collect();
            return Tree::from_parents(&parents?);
        }
        (None, true, None) => 2,
        (None, false, Some(arity)) => number(spec, options, "kary", arity)?,
        _ => {
            let why = "a tree is binary, kary=K or parents=-,0,1,.., the first two with ,nodes=N if need be";
            return Err(options.conflict(why).into());
        }
    };
    let nodes = match nodes {
        Some(nodes) => number(spec, options, "nodes", nodes)?,
        None => {
            check_ranks(spec, ranks)?;
            ranks
        }
    };
    if arity == 0 || nodes == 0 {
        return Err(options.conflict("a tree's arity and number of nodes are at least 1").into());
    }
    if nodes > MAX_NODES {
        return Err(too_many(spec));
    }
    Ok(Tree::heap_shaped(nodes, arity))
}

fn parent(spec: &str, options: &Options<'_>, entry: &str) -> Result<Option<NodeId>, InvalidTopology> {
    match entry {
        "-" | "-1" => Ok(None),
        entry => number(spec, options, "each parent", entry).map(Some),
    }
}
