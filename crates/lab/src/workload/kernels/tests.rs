use super::*;
use crate::divisible::spread::cut::cut;
use proptest::prelude::*;

struct Still;

impl equipoise::node::Worker for Still {
    fn checkpoint(&mut self) {}
    fn charge(&mut self, _: u64) {}
    fn sleep(&mut self, _: u64) {}
    fn spin(&mut self, _: u64) {}
}

struct Text(Vec<u8>);

impl crate::divisible::spread::InputSource for Text {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&mut self, range: Range, into: &mut Vec<u8>) -> Result<()> {
        into.extend_from_slice(&self.0[range.start as usize..range.end as usize]);
        Ok(())
    }

    fn again(&self) -> Result<Box<dyn crate::divisible::spread::InputSource + Send>> {
        Ok(Box::new(Text(self.0.clone())))
    }
}

/// The answer of a computation from `shares` shares, fed in pieces of `bite` bytes, and the output written.
fn computed(computation: &Computation, text: &[u8], records: Records, shares: u64, bite: usize) -> Result<(Answer, Vec<u8>)> {
    let length = text.len() as u64;
    let records = computation.records(records, length);
    let desk = computation.desk(records, length, None, Duration::from_secs(60), false);
    let lengths: Vec<u64> = (0..shares).map(|share| length * (share + 1) / shares - length * share / shares).collect();
    let ranges = cut(&mut Text(text.to_vec()), records, &lengths)?;
    let (mut parts, mut output) = (Vec::new(), Vec::new());
    for (node, range) in ranges.into_iter().enumerate().filter(|(node, range)| !range.is_empty() || (length == 0 && *node == 0)) {
        let mut kernel = desk.kernel(node as u32, range, false)?;
        let share = &text[range.start as usize..range.end as usize];
        share.chunks(bite).try_for_each(|bite| kernel.eat(bite, &mut Still))?;
        parts.push((node as u32, range, kernel.finish(&mut Still)?));
        loop {
            let more = desk.next(range, 1000)?;
            if more.is_empty() {
                break;
            }
            output.extend(more);
        }
    }
    Ok((computation.answer(parts)?, output))
}

fn kernel(text: &str) -> Computation {
    Computation::parse(text, false).unwrap()
}

fn command(command: &str, ok: &str) -> Computation {
    Computation::Command { command: command.into(), ok: ok.parse().unwrap() }
}

#[test]
fn words_are_those_of_wc() {
    let count = |text: &[u8]| match computed(&kernel("count"), text, Records::Lines, 1, 3).unwrap().0 {
        Answer::Counts(counts) => (counts.lines, counts.words, counts.bytes),
        other => panic!("{other:?}"),
    };
    assert_eq!(count(b""), (0, 0, 0));
    assert_eq!(count(b"one two\r\nthree\x0bfour"), (1, 4, 19));
    assert_eq!(count(b"\0 \x01 \xff a\0b"), (0, 1, 9));
}

#[test]
fn a_program_gets_its_share_and_is_judged() {
    let text: Vec<u8> = (0..2000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    let (answer, output) = computed(&command("cat", "0"), &text, Records::Lines, 3, 777).unwrap();
    assert!(output == text && answer == Answer::Written { status: 0, silent: 0, shares: 3 }, "{answer:?}");
    // One that does not read, one that writes more than a pipe holds before it reads.
    let (_, output) = computed(&command("head -n 1", "0"), &text, Records::Lines, 2, 100).unwrap();
    assert_eq!(output.split(|byte| *byte == b'\n').count(), 3);
    let (_, output) = computed(&command("seq 100000; cat", "0"), &text, Records::Lines, 1, 100).unwrap();
    assert!(output.len() > 500_000 && output.ends_with(&text));
    let grep = |ok: &str, pattern: &str| {
        computed(&command(&format!("grep {pattern}"), ok), &text, Records::Lines, 4, 4096).map(|(answer, _)| answer)
    };
    assert_eq!(grep("0,1", "^7$").unwrap(), Answer::Written { status: 0, silent: 3, shares: 4 });
    assert_eq!(grep("0,1", "none").unwrap(), Answer::Written { status: 1, silent: 4, shares: 4 });
    for (ok, program, said) in [
        ("0", "grep none", "status 1 (--ok-status 0,1 accepts it)"),
        ("0", "exit 3", "status 3"),
        ("0", "kill -9 $$", "signal 9"),
        ("0", "no-such-program", "127"),
    ] {
        let why = computed(&command(program, ok), &text, Records::Lines, 2, 100).unwrap_err().to_string();
        assert!(why.contains(said) && why.contains("bytes 0.."), "{why}");
    }
}

proptest! {
    #[test]
    fn answers_do_not_depend_on_shares(
        text in prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b' '), Just(b'\n'), Just(b'\r'), Just(0u8), Just(0xffu8)], 0..400),
        shares in 1u64..9, bite in 1usize..50, records in prop_oneof![Just(Records::Lines), Just(Records::Nul), Just(Records::Bytes(7))],
    ) {
        for name in ["count", "grep=^a.*b", "grep=^$", "histogram", "histogram=numbers", "checksum"] {
            let whole = computed(&kernel(name), &text, records, 1, usize::MAX).unwrap();
            prop_assert_eq!(computed(&kernel(name), &text, records, shares, bite).unwrap(), whole, "{}", name);
        }
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line)).collect();
        let blank = lines.iter().filter(|line| line.is_empty()).count() as u64;
        prop_assert_eq!(computed(&kernel("grep=^$"), &text, Records::Lines, shares, bite).unwrap().0, Answer::Found(blank));
        let print = Computation::parse("grep=b", true).unwrap();
        let found: Vec<u8> = lines.iter().filter(|line| line.contains(&b'b')).flat_map(|line| [line, &b"\n"[..]].concat()).collect();
        prop_assert_eq!(computed(&print, &text, Records::Lines, shares, bite).unwrap().1, found);
    }

    #[test]
    fn counts_do_not_depend_on_cuts(text in "[ab \n\u{1}]{0,60}", cuts in prop::collection::vec(0usize..60, 0..5)) {
        let count = |text: &str| match computed(&kernel("count"), text.as_bytes(), Records::Lines, 1, 7).unwrap().0 {
            Answer::Counts(counts) => counts,
            other => panic!("{other:?}"),
        };
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let sum = cuts.windows(2).map(|cut| count(&text[cut[0]..cut[1]])).fold(Counts::default(), Counts::then);
        let whole = count(&text);
        prop_assert_eq!((sum.lines, sum.words, sum.bytes), (whole.lines, whole.words, whole.bytes));
    }
}

#[test]
fn the_checksum_is_blake3() {
    for length in [0usize, 1, 1024, 16_384, 16_385, 65_536, 65_537, 131_072, 500_000, 1_000_000] {
        let text: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
        let expected = Answer::Checksum(blake3::hash(&text).to_hex().to_string());
        for shares in [1, 2, 3, 5] {
            assert_eq!(computed(&kernel("checksum"), &text, Records::Lines, shares, 10_007).unwrap().0, expected, "{length} in {shares}");
        }
    }
    assert_eq!(checksum::group(1 << 40), 1 << 24);
}

#[test]
fn forms_of_the_option() {
    for name in ["count", "grep=a=b", "histogram", "checksum", "histogram=numbers"] {
        assert_eq!(kernel(name).name(), name);
    }
    for wrong in ["", "grep", "grep=(", "counts", "count=1", "histogram=words"] {
        let why = Computation::parse(wrong, false).unwrap_err().to_string();
        assert!(why.starts_with("kernel") && !why.contains('\n'), "{why}");
    }
    assert!(Computation::parse("count", true).unwrap_err().to_string().starts_with("--print"));
}
