//! A prompt that returns a type of its own.

struct Poem {
    lines: u32,
}

async fn poem() -> Poem {
    Poem { lines: 3 }
}

fn main() {
    let _ = oxmcp::Prompt::new("poem", "Write a poem", poem);
}
