"""The bundled adapters, one folder per SDK; each is found through the entry-point group `loadpoint.adapters`."""
