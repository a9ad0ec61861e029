"""What runs in the sandbox: a small SDK and the modules that we ship. The core never imports it."""
