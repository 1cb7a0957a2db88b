"""``python -m minivllm`` is the ``minivllm`` command."""

import sys

from minivllm.cli import main

sys.exit(main())
