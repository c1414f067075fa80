"""Python that runs in the browser, beside the diagnosis of envmedic itself."""
