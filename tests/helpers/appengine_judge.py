"""Runs in an environment with leveldb-export and the App Engine SDK, not in the one that runs the tests.

`read FILE...` prints the SDK's findings in exports, and `rows FILE...` those of leveldb-export. `make SEED` prints
records made by the SDK, in hexadecimal, with the contents of each. The JSON is that of
`cordwood.payload.entity.to_dict`.
"""

import base64
import datetime
import json
import math
import os
import random
import sys
from pathlib import Path

os.environ["APPLICATION_ID"] = "s~app"

from google.appengine.api import datastore, users
from google.appengine.api import datastore_types as types
from google.appengine.datastore import entity_bytes_pb2
from leveldb_export import parse_leveldb_documents
from leveldb_export.records import RecordsReader


def json_of_key(key):
    out = {"app": key.app(), "path": key.to_path()}
    if key.namespace():
        out["namespace"] = key.namespace()
    return out


def json_of(value):  # noqa: PLR0911 - one for each type
    if isinstance(value, types.EmbeddedEntity):
        proto = entity_bytes_pb2.EntityProto.FromString(value)
        key = proto.key.path.element and json_of_key(types.Key._FromPb(proto.key))  # noqa: SLF001
        # `FromPb` cannot read an entity without an app.
        proto.key.app = proto.key.app or "s~app"
        out = {name: json_of(item) for name, item in datastore.Entity.FromPb(proto).items()}
        return {"__key__": key, **out} if key else out
    if isinstance(value, (types.Blob, types.ByteString)):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime):
        return value.isoformat() + "Z"
    if isinstance(value, types.GeoPt):
        return {"latitude": value.lat, "longitude": value.lon}
    if isinstance(value, types.Key):
        return json_of_key(value)
    if isinstance(value, users.User):
        user = {"email": value.email(), "auth_domain": value.auth_domain(), "gaia_id": 0}
        return {**user, "obfuscated_gaia_id": value.user_id()} if value.user_id() else user
    if isinstance(value, list):
        return [json_of(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value


def json_of_record(record):
    entity = datastore.Entity.FromPb(bytes(record))
    properties = {name: json_of(value) for name, value in entity.items()}
    return {"key": json_of_key(entity.key()), "properties": properties}


def value_of(rng, depth):
    texts = ["", "a", "\u00e4\u00f6", "x" * 300, "\U0001f600\n"]
    makers = [
        lambda: None,
        lambda: rng.random() < 0.5,
        lambda: rng.choice([0, 1, -1, 2**63 - 1, -(2**63), rng.randrange(-(2**40), 2**40)]),
        lambda: rng.choice([0.0, -1.5, 1e308, float("nan"), rng.random()]),
        lambda: rng.choice(texts),
        lambda: types.Text(rng.choice(texts)),
        lambda: types.Blob(rng.randbytes(rng.randrange(300))),
        lambda: types.ByteString(rng.randbytes(rng.randrange(9))),
        lambda: types.Link("http://" + rng.choice("ab")),
        lambda: types.Rating(rng.randrange(100)),
        lambda: types.GeoPt(rng.uniform(-90, 90), rng.uniform(-180, 180)),
        lambda: key_of(rng),
        lambda: users.User(email="a@b.c", _auth_domain="b.c", _user_id=rng.choice(["17", None])),
        lambda: datetime.datetime(1, 1, 1) + datetime.timedelta(microseconds=rng.randrange(315537897600 * 10**6)),
    ]
    if depth:
        makers.append(lambda: types.EmbeddedEntity(entity_of(rng, depth - 1).ToPb().SerializeToString()))
        makers.append(lambda: [value_of(rng, 0) for _ in range(rng.randrange(4))])
    return rng.choice(makers)()


def key_of(rng):
    path = []
    for _ in range(rng.randrange(1, 4)):
        path += [rng.choice(["A", "Kind \u00e4"]), rng.choice([1, 2**62, "name", "n/\u00e4"])]
    return types.Key.from_path(*path, namespace=rng.choice(["", "ns"]))


def entity_of(rng, depth):
    parent = rng.choice([None, key_of(rng)])
    namespace = parent.namespace() if parent else rng.choice(["", "ns"])
    entity = datastore.Entity("Kind", parent=parent, id=rng.randrange(1, 2**50), namespace=namespace)
    for name in rng.sample(["a", "b", "c", "\u00e4", "with space", "f"], rng.randrange(6)):
        entity[name] = value_of(rng, depth)
    return entity


def main(verb, *arguments):
    if verb == "make":
        rng = random.Random(int(arguments[0]))
        for _ in range(500):
            record = entity_of(rng, 3).ToPb().SerializeToString()
            yield record.hex(), json_of_record(record)
    for name in arguments if verb != "make" else []:
        with Path(name).open("rb") as file:
            if verb == "rows":
                yield from parse_leveldb_documents(file)
            else:
                yield from map(json_of_record, RecordsReader(file, no_check_crc=False))


print(json.dumps(list(main(*sys.argv[1:])), default=json_of))  # noqa: T201
