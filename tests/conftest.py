"""A notebook is run as at a reader's, and yet the same at everybody's."""

import tempfile

import pytest


@pytest.fixture
def run_notebook(monkeypatch):
    """Run every cell of a notebook, in a folder, by a Jupyter kernel of its own.

    Nothing of the user's Jupyter takes part: neither settings, nor what is run at each start, nor a history that two
    kernels write at once. The kernel is reached by files: of a port that was found free, another process may have
    become the owner before the kernel takes it. And nobody loses patience: what a slow kernel says late is not lost.
    """
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    from traitlets.config import Config

    def run(book, folder):
        with tempfile.TemporaryDirectory() as place:  # not tmp_path: the name of a socket has a hundred letters at most
            for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
                monkeypatch.setenv(name, place)
            nbclient.NotebookClient(
                book,
                timeout=None,
                startup_timeout=3600,
                iopub_timeout=3600,
                kernel_name="python3",
                resources={"metadata": {"path": str(folder)}},
                config=Config({"KernelManager": {"transport": "ipc", "ip": f"{place}/kernel"}}),
            ).execute()

    return run
