"""skiplab: why do skip connections make deep networks trainable, and does your network have what they fix?"""

__version__ = "0.1.0"
