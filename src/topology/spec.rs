//! What `--topology` takes, and the canonical name that reads back.

use std::sync::Arc;

use super::error::shortened;
use super::lattice::joined;
use super::{Complete, Graph, Grid, Hypercube, InvalidTopology, Kind, Line, MAX_NODES, Mesh, NodeId, Topology, Tree};

impl Topology {
    /// Reads `hypercube[:D] | mesh[:RxC..] | torus[:RxC..] | tree[:binary | :kary=K | :parents=-,0,1,1,..] | grid[:PxQ..] | line[:N] |
    /// ring[:N] | complete[:N] | graph:edges=0-1,1-2,..`.
    ///
    /// Without a size it is fitted to `ranks`, see [`Topology::fitted`]. Heap-shaped trees have `ranks` nodes unless `,nodes=N` follows.
    /// The root's parent is `-` or `-1`. Whether a topology of given size suits the ranks is [`super::Placement::new`]'s to say.
    pub fn parse(spec: &str, ranks: u32) -> Result<Topology, InvalidTopology> {
        let (word, size) = match spec.split_once(':') {
            Some((word, size)) => (word, Some(size)),
            None => (spec, None),
        };
        let kind: Kind = word.parse().map_err(|_| InvalidTopology::UnknownName { spec: shortened(spec) })?;
        match size {
            None if kind == Kind::Graph => Err(InvalidTopology::malformed(spec, "the file of its edges is missing, as in graph:net.txt")),
            Some(size) => sized(spec, kind, size, ranks),
            None => {
                check_ranks(spec, ranks)?;
                Ok(Topology::fitted(kind, ranks))
            }
        }
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
        n if n > MAX_NODES => Err(InvalidTopology::TooManyNodes { spec: shortened(spec) }),
        _ => Ok(()),
    }
}

fn sized(spec: &str, kind: Kind, size: &str, ranks: u32) -> Result<Topology, InvalidTopology> {
    Ok(match kind {
        Kind::Hypercube => match number(spec, "dimension", size) {
            Err(InvalidTopology::TooManyNodes { spec }) => {
                return Err(InvalidTopology::TooManyDimensions { spec });
            }
            dimension => Topology::Hypercube(Hypercube::new(dimension?)?),
        },
        Kind::Mesh => Topology::Mesh(Mesh::new(&sides(spec, size)?, false)?),
        Kind::Torus => Topology::Mesh(Mesh::new(&sides(spec, size)?, true)?),
        Kind::Ring => Topology::Mesh(Mesh::new(&[number(spec, "number of nodes", size)?], true)?),
        Kind::Grid => Topology::Grid(Grid::new(&sides(spec, size)?)?),
        Kind::Line => Topology::Line(Line::new(number(spec, "number of nodes", size)?)?),
        Kind::Complete => Topology::Complete(Complete::new(number(spec, "number of nodes", size)?)?),
        Kind::Tree => Topology::Tree(Arc::new(tree(spec, size, ranks)?)),
        Kind::Graph => match size.strip_prefix("edges=") {
            Some(edges) => Topology::graph(size, &edges.replace(',', "\n").replace('-', " "))?,
            None => {
                return Err(InvalidTopology::malformed(
                    spec,
                    "its file has to be read first, or edges are given as in graph:edges=0-1,1-2",
                ));
            }
        },
    })
}

/// A whole number that fits; `what` says what it counts.
fn number(spec: &str, what: &str, text: &str) -> Result<u32, InvalidTopology> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(InvalidTopology::malformed(spec, format!("{what} {text:?} is not a whole number")));
    }
    // Digits only fail to parse when they are too many.
    text.parse().map_err(|_| InvalidTopology::TooManyNodes { spec: shortened(spec) })
}

fn sides(spec: &str, size: &str) -> Result<Vec<u32>, InvalidTopology> {
    size.split('x').map(|side| number(spec, "side", side)).collect()
}

fn tree(spec: &str, shape: &str, ranks: u32) -> Result<Tree, InvalidTopology> {
    if let Some(list) = shape.strip_prefix("parents=") {
        let parents: Result<Vec<Option<NodeId>>, _> = list.split(',').map(|entry| parent(spec, entry.trim())).collect();
        return Tree::from_parents(&parents?);
    }
    let (shape, nodes) = match shape.split_once(",nodes=") {
        Some((shape, nodes)) => (shape, number(spec, "number of nodes", nodes)?),
        None => {
            check_ranks(spec, ranks)?;
            (shape, ranks)
        }
    };
    let arity = match shape.strip_prefix("kary=") {
        Some(arity) => number(spec, "arity", arity)?,
        None if shape == "binary" => 2,
        None => {
            return Err(InvalidTopology::malformed(
                spec,
                "a tree is binary, kary=K or parents=-,0,1,.., the first two with ,nodes=N if need be",
            ));
        }
    };
    if arity == 0 || nodes == 0 {
        return Err(InvalidTopology::malformed(spec, "zero; a tree's arity and number of nodes are at least 1"));
    }
    if nodes > MAX_NODES {
        return Err(InvalidTopology::TooManyNodes { spec: shortened(spec) });
    }
    Ok(Tree::heap_shaped(nodes, arity))
}

fn parent(spec: &str, entry: &str) -> Result<Option<NodeId>, InvalidTopology> {
    match entry {
        "-" | "-1" => Ok(None),
        entry => number(spec, "parent", entry).map(Some),
    }
}
