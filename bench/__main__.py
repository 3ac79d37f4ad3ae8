"""`python -m bench`, for when the project's folder is the working directory; see also
`./maelstrom`.
"""

from bench.cli import main

if __name__ == "__main__":
    main()
