//! The chart of the README: CPU time per call of oxmcp, raw and rmcp, drawn from the latest measurements.

use std::{fmt::Write as _, fs, path::Path};

use super::results::{Measure, Results};

/// The file of the chart, relative to the root of the repository.
const FILE: &str = "docs/bench.svg";

/// The era of all numbers in the chart.
const ERA: &str = "2026";

/// The cells in the chart, with their captions.
const ROWS: &[(&str, &str)] = &[
    ("stdio add", "a call over stdio"),
    ("stdio add x16", "… with 16 in flight"),
    ("stdio rich", "… 2 KiB in, 4 KiB structured out"),
    ("stdio echo 10 KiB", "… 10 KiB of text in and out"),
    ("stdio list 100", "… a list of 103 tools"),
    ("stdio progress 1k", "… 1 000 progress notifications"),
    ("http add", "a call over HTTP"),
    ("http add x16", "… with 16 in flight"),
    ("http rich", "… 2 KiB in, 4 KiB structured out"),
    ("http wait x16", "… whose handler waits, 16 in flight"),
    ("http update 1k", "an update for 1 000 listeners"),
    ("client add x16", "the client, over stdio, 16 in flight"),
    ("http client x16", "the client, over HTTP, 16 in flight"),
];

/// The programs in the chart, with their legends. The names are also the classes of the bars.
const PROGRAMS: [(&str, &str); 3] = [
    ("oxmcp", "oxmcp"),
    ("raw", "raw: written by hand, the practical limit"),
    ("rmcp", "rmcp"),
];

const WIDTH: usize = 780;
/// The y coordinate of the first row, below the title and the legend.
const TOP: usize = 72;
/// The x coordinate at which the bars begin, and the width of the longest bar of a row.
const LEFT: f64 = 250.0;
const LONGEST: f64 = 370.0;
const BAR: usize = 12;
const ROW: usize = 3 * BAR + 16;

const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.note { fill: #59636e }
.oxmcp { fill: #0969da }
.raw { fill: #8c959f }
.rmcp { fill: #d4762c }
text.oxmcp { font-weight: 600; fill: #0969da }
text.raw, text.rmcp { fill: #59636e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.note, text.raw, text.rmcp { fill: #9198a1 }
.oxmcp, text.oxmcp { fill: #4493f8 }
.raw { fill: #656c76 }
.rmcp { fill: #bd6a2a }
}
";

/// The contents of one row: a caption, and microseconds for each of [`PROGRAMS`].
struct Row {
    caption: &'static str,
    microseconds: [Option<f64>; 3],
}

/// Draws the chart of these results into its file.
pub(crate) fn write(results: &Results, root: &Path) -> Result<(), String> {
    let rows = rows(results);
    if rows.is_empty() {
        return Err(
            "no measurements for the chart; run `cargo xtask bench --cpu` first".to_owned(),
        );
    }
    let file = root.join(FILE);
    fs::write(&file, draw(&rows, rounds(results))).map_err(|e| format!("{FILE}: {e}"))?;
    println!("\nwrote {} of {} rows to {FILE}", rows.len(), ROWS.len());
    Ok(())
}

/// The rows for which the numbers of oxmcp and of the limit are known.
fn rows(results: &Results) -> Vec<Row> {
    let row = |&(cell, caption): &(&str, &'static str)| Row {
        caption,
        microseconds: PROGRAMS.map(|(name, _)| results.get(Measure::Cpu, (cell, ERA, name))),
    };
    ROWS.iter()
        .map(row)
        .filter(|row| matches!(row.microseconds, [Some(_), Some(_), _]))
        .collect()
}

/// The smallest number of rounds among the medians that the bars show.
fn rounds(results: &Results) -> f64 {
    let all = ROWS.iter().flat_map(|(cell, _)| {
        PROGRAMS.map(|(name, _)| results.get(Measure::Rounds, (cell, ERA, name)))
    });
    all.flatten().reduce(f64::min).unwrap_or_default()
}

fn draw(rows: &[Row], rounds: f64) -> String {
    let bottom = TOP + rows.len() * ROW;
    let height = bottom + 48;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>CPU time per call of oxmcp, of a server written by hand, and of rmcp</title>\n\
         <style>\n{STYLE}</style>\n"
    );
    text(
        &mut svg,
        "title",
        0.0,
        20,
        "CPU time per call, MCP 2026-07-28 (shorter is better)",
    );
    let mut x = 0.0;
    for (name, legend) in PROGRAMS {
        rectangle(&mut svg, name, (x, 36), 12.0);
        text(&mut svg, "note", x + 18.0, 47, legend);
        // Wide enough for the letters of any font.
        x += 48.0 + legend.len() as f64 * 7.0;
    }
    for (index, row) in rows.iter().enumerate() {
        draw_row(&mut svg, row, TOP + index * ROW);
    }
    let notes = [
        format!(
            "Microseconds of the measured process, user and system; one CPU, median of {rounds} interleaved rounds."
        ),
        "Each row has its own scale. Made by cargo xtask bench --chart.".to_owned(),
    ];
    for (index, note) in notes.iter().enumerate() {
        text(&mut svg, "note", 0.0, bottom + 20 + index * 17, note);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_row(svg: &mut String, row: &Row, top: usize) {
    text(svg, "row", 0.0, top + BAR + 10, row.caption);
    let known = row.microseconds.iter().flatten();
    let longest = known.copied().reduce(f64::max).unwrap_or(1.0);
    let [_, limit, _] = row.microseconds;
    for (index, ((name, _), microseconds)) in PROGRAMS.iter().zip(row.microseconds).enumerate() {
        let y = top + index * BAR;
        let Some(microseconds) = microseconds else {
            continue;
        };
        // Even the shortest bar must be visible.
        let width = (microseconds / longest * LONGEST).max(2.0);
        rectangle(svg, name, (LEFT, y), width);
        let label = match limit {
            Some(limit) if *name != "raw" => {
                format!("{}, {}", time(microseconds), times(microseconds / limit))
            }
            _ => time(microseconds),
        };
        text(svg, name, LEFT + width + 8.0, y + BAR - 2, &label);
    }
}

fn rectangle(svg: &mut String, class: &str, (x, y): (f64, usize), width: f64) {
    let height = BAR - 2;
    writeln!(
        svg,
        r#"<rect class="{class}" x="{x:.0}" y="{y}" width="{width:.1}" height="{height}" rx="2"/>"#
    )
    .expect("writing to a String cannot fail");
}

fn text(svg: &mut String, class: &str, x: f64, y: usize, text: &str) {
    writeln!(
        svg,
        r#"<text class="{class}" x="{x:.0}" y="{y}">{text}</text>"#
    )
    .expect("writing to a String cannot fail");
}

fn times(ratio: f64) -> String {
    let digits = if ratio < 10.0 { 2 } else { 0 };
    format!("{ratio:.digits$}x")
}

/// A time with about three significant digits, and its unit.
fn time(microseconds: f64) -> String {
    match microseconds {
        10_000.0.. => format!("{:.1} ms", microseconds / 1000.0),
        1_000.0.. => format!("{:.2} ms", microseconds / 1000.0),
        100.0.. => format!("{microseconds:.0} µs"),
        10.0.. => format!("{microseconds:.1} µs"),
        _ => format!("{microseconds:.2} µs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(numbers: &[(&str, &str, f64)]) -> Results {
        let mut results = Results::default();
        for (cell, program, number) in numbers {
            results.record(Measure::Cpu, (cell, ERA, program), Some(*number));
            results.record(Measure::Rounds, (cell, ERA, program), Some(7.0));
        }
        results
    }

    #[test]
    fn numbers_become_bars_with_labels() {
        let results = results(&[
            ("stdio add", "oxmcp", 15.0),
            ("stdio add", "raw", 12.5),
            ("stdio add", "rmcp", 250.0),
            ("http update 1k", "oxmcp", 12_345.0),
            ("http update 1k", "raw", 6_172.5),
        ]);
        let svg = draw(&rows(&results), rounds(&results));
        let (_, body) = svg.split_once("</style>\n").unwrap();
        let expected = r#"<text class="title" x="0" y="20">CPU time per call, MCP 2026-07-28 (shorter is better)</text>
<rect class="oxmcp" x="0" y="36" width="12.0" height="10" rx="2"/>
<text class="note" x="18" y="47">oxmcp</text>
<rect class="raw" x="83" y="36" width="12.0" height="10" rx="2"/>
<text class="note" x="101" y="47">raw: written by hand, the practical limit</text>
<rect class="rmcp" x="418" y="36" width="12.0" height="10" rx="2"/>
<text class="note" x="436" y="47">rmcp</text>
<text class="row" x="0" y="94">a call over stdio</text>
<rect class="oxmcp" x="250" y="72" width="22.2" height="10" rx="2"/>
<text class="oxmcp" x="280" y="82">15.0 µs, 1.20x</text>
<rect class="raw" x="250" y="84" width="18.5" height="10" rx="2"/>
<text class="raw" x="276" y="94">12.5 µs</text>
<rect class="rmcp" x="250" y="96" width="370.0" height="10" rx="2"/>
<text class="rmcp" x="628" y="106">250 µs, 20x</text>
<text class="row" x="0" y="146">an update for 1 000 listeners</text>
<rect class="oxmcp" x="250" y="124" width="370.0" height="10" rx="2"/>
<text class="oxmcp" x="628" y="134">12.3 ms, 2.00x</text>
<rect class="raw" x="250" y="136" width="185.0" height="10" rx="2"/>
<text class="raw" x="443" y="146">6.17 ms</text>
<text class="note" x="0" y="196">Microseconds of the measured process, user and system; one CPU, median of 7 interleaved rounds.</text>
<text class="note" x="0" y="213">Each row has its own scale. Made by cargo xtask bench --chart.</text>
</svg>
"#;
        assert_eq!(body, expected);
    }

    #[test]
    fn row_without_our_number_or_limit_is_omitted() {
        let results = results(&[("stdio add", "oxmcp", 15.0), ("http add", "raw", 20.0)]);
        assert!(rows(&results).is_empty());
        assert!(write(&results, Path::new("/nowhere")).is_err());
    }

    #[test]
    fn every_row_is_a_cell_of_the_era() {
        for (name, _) in ROWS {
            let cells = super::super::cells::CELLS;
            let cell = cells.iter().find(|cell| cell.name == *name);
            assert!(cell.is_some_and(|cell| cell.eras.contains(&ERA)), "{name}");
        }
    }
}
