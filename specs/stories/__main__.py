"""`python -m specs.stories`: write the events into the pages of docs/models, and the pictures beside them.

A page keeps its events between two comments; the pictures are in docs/images.
"""

from specs.stories import BEGIN, DOCS, END, STORIES, write


def main() -> None:
    """Write the events into the pages and the pictures beside them."""
    for story in STORIES:
        lines, svg = write(story)
        page = DOCS / "models" / f"{story.page}.md"
        text = page.read_text()
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        page.write_text(before + "\n".join([BEGIN, *lines, END]) + after)
        story.picture.write_text(svg)


if __name__ == "__main__":
    main()
