"""The part of torch that the dataset of `docs/guides/training.md` needs, for tests without torch."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

ROOT = Path(__file__).parents[2]
PAGE = "docs/guides/training.md"


class Data(ModuleType):
    """`torch.utils.data`, in the process of a worker or in that of the training."""

    IterableDataset = Dataset = object

    def __init__(self):
        super().__init__("torch.utils.data")
        self.worker = None

    def get_worker_info(self):
        return self.worker

    def be(self, number, count):
        """Become the worker with this number."""
        self.worker = SimpleNamespace(id=number, num_workers=count)


def installed(monkeypatch):
    """Makes `import torch.utils.data` import the substitute, and returns it."""
    data = Data()
    modules = {"torch": ModuleType("torch"), "torch.utils": ModuleType("torch.utils"), data.__name__: data}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return data


def dataset_of_the_page():
    """The class of the page, without the example after it."""
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    code = re.search(r"```python\n(import cordwood\n.*?)\n\n\nwith ", page, re.DOTALL)[1]
    names = {}
    exec(code, names)  # noqa: S102 - the page's own code
    return names["LogDataset"]
