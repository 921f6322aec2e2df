"""Writes the Python examples from README and from each page to a directory, for the type checkers: `make types`."""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# The examples of these pages import packages without types, or packages that `make types` does not install.
UNTYPED = {
    "docs/engines.md": "apache_beam",
    "docs/guides/libraries.md": "dask and datasets",
    "docs/guides/training.md": "torch",
    "docs/reference/spark.md": "pyspark",
    "docs/reference/arrow.md": "pandas and pyarrow",
    "docs/guides/databases.md": "pyarrow",
    "docs/guides/tables.md": "pyarrow",
    "docs/reference/remote.md": "fsspec",
    "docs/reference/wandb.md": "wandb.proto",
}


def main(directory: Path) -> None:
    """Writes a module for each page, in which an example continues where the one before it ended."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.py"):
        old.unlink()
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        if page.relative_to(ROOT).as_posix() in UNTYPED:
            continue
        examples = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        if examples:
            name = page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "_").replace("-", "_")
            (directory / f"{name}.py").write_text("\n".join(examples), encoding="utf-8")
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (directory / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
