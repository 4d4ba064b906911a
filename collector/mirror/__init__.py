"""The mirror of a recording at another place: any file system that fsspec reaches.

Finished files (segments of the rank's file, traces, pickles, reports) are queued by name
and copied by threads of their own. Nothing of it waits for training, or training for it;
what could not be copied stays here and is named.
"""
