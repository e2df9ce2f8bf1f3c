"""How a secret is known: by its value, by its shape, by its name; and text with masks in the place of secrets."""
