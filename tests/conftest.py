# SPDX-License-Identifier: MIT
"""No test reads the options of the user who runs it (src/cli/options/user_options.h)."""
import os

os.environ["XDG_CONFIG_HOME"] = "/dev/null"
os.environ.pop("CAIRN_OPTIONS", None)
