//! The input of a prompt derives neither of the traits that it needs.

struct Poem {
    topic: String,
}

async fn poem(Poem { topic }: Poem) -> String {
    topic
}

fn main() {
    let _ = oxmcp::Prompt::new("poem", "Write a poem", poem);
}
