"""Changes to a copy of a user's module: what the papers propose against what they found.

A remedy never touches the module it is given. It returns a copy with the same mode, dtype and device, drawn from
the generator it is given, or refuses in one sentence that names the layer in its way.
"""
