"""The code that runs in the sandbox: a small SDK and the modules that iact ships. The core never imports it."""
