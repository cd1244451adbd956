"""Files that lie about themselves are refused in words; nothing of them is run, and no memory is taken in advance."""

import io
import json
import pickle
import struct
import tracemalloc
import zipfile

import ml_dtypes
import numpy as np
import pytest
from formats import heads

from attnpool_ref import formats
from attnpool_ref.formats.sources import opened, safetensors

ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
LITTLE_MEMORY = 3_000_000
"""Bytes; a thousandth of what the worst of these files ask for."""


def safe(header, body=b"\0" * 8, length=None):
    """The bytes of a safetensors file."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + body


SAFETENSORS = {
    "empty": (b"", "header would have 0 bytes"),
    "seven bytes": (b"\0" * 7, "header would have"),
    "header longer than the file": (safe({"a": ONE}, length=10_000), "header would have 10000 bytes"),
    "header of exabytes": (safe({"a": ONE}, length=2**63), "header would have 9223372036854775808 bytes"),
    "no JSON": (safe(b"{nonsense"), "no JSON"),
    "no UTF-8": (safe(b'{"\xff": 1}'), "no JSON"),
    "deep JSON": (safe(b"[" * 100_000 + b"]" * 100_000), "no JSON"),
    "a list": (safe([ONE]), "no JSON object"),
    "one name twice": (safe(b'{"a": {}, "a": {}}'), "a name stands twice"),
    "no offsets": (safe({"a": {"dtype": "F32", "shape": [2]}}), "other things than dtype, shape and data_offsets"),
    "unknown dtype that ends before it begins": (
        safe({"a": ONE | {"dtype": "F3", "data_offsets": [8, 0]}}),
        "data_offsets",
    ),
    "unknown dtype beyond the file": (safe({"a": ONE | {"dtype": "F3", "data_offsets": [0, 9]}}), "need 9 bytes"),
    "dtype of no text": (safe({"a": ONE | {"dtype": ["F32"]}}), "the dtype"),
    "negative shape": (safe({"a": ONE | {"shape": [-2]}}), "shape"),
    "shape of booleans": (safe({"a": ONE | {"shape": [True, 2]}}), "shape"),
    "shape of text": (safe({"a": ONE | {"shape": "22"}}), "shape"),
    "many axes": (safe({"a": ONE | {"shape": [1] * 100 + [2]}}), "shape"),
    "an absurd shape": (safe({"a": ONE | {"shape": [2**40, 2**40]}}), "4835703278458516698824704 bytes"),
    "sizes of thousands of digits": (
        safe(b'{"a": {"dtype": "F32", "shape": [%s, %s], "data_offsets": [0, 8]}}' % (b"9" * 4000, b"9" * 4000)),
        r"shape \[9+\.\.\.9+\], data_offsets \[0, 8\]$",
    ),
    "a size of more digits than Python reads": (
        safe(b'{"a": {"dtype": "F32", "shape": [%s], "data_offsets": [0, 8]}}' % (b"9" * 5000)),
        "its header is no JSON",
    ),
    "half a byte": (safe({"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}}, b"\0"), "shape .3. of F4"),
    "backward offsets": (safe({"a": ONE | {"data_offsets": [8, 0]}}), "data_offsets"),
    "three offsets": (safe({"a": ONE | {"data_offsets": [0, 4, 8]}}), "data_offsets"),
    "shape and offsets disagree": (safe({"a": ONE | {"shape": [3]}}), "12 bytes"),
    "overlap": (safe({"a": ONE, "b": ONE}), "'b' begins at 0, where the tensor before it ends at 8"),
    "a gap": (safe({"a": ONE | {"data_offsets": [4, 12]}}, b"\0" * 12), "begins at 4"),
    "beyond the file": (safe({"a": ONE}, b"\0" * 7), "need 8 bytes, and it has 7"),
    "bytes that nobody claims": (safe({"a": ONE}, b"\0" * 9), "need 8 bytes, and it has 9"),
}


def npy(array=None, header=None, body=None, length=None):
    """The bytes of an array, as NumPy writes them, or with a header of one's own."""
    if header is None:
        file = io.BytesIO()
        np.lib.format.write_array(file, array)
        return file.getvalue()
    raw = header.encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(raw) if length is None else length) + raw + (body or b"")


def archive(members, compression=zipfile.ZIP_STORED):
    """The bytes of an archive; members are (name, bytes)."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, raw in members:
            made.writestr(name, raw)
    return file.getvalue()


class Bomb:
    """What runs code when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was run",)


def objects():
    file = io.BytesIO()
    np.lib.format.write_array(file, np.array([Bomb()], object), allow_pickle=True)
    return file.getvalue()


def header_of(shape, descr="'<f4'"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


GOOD = archive([("a.npy", npy(np.ones(4, np.float32)))])
NPZ = {
    "empty": (b"", "not a zip file"),
    "text": (b"hello", "not a zip file"),
    "cut off": (GOOD[:-30], "not a zip file"),
    "no array": (archive([("a.txt", b"hello")]), "'a.txt', which is no array"),
    "no header": (archive([("a.npy", b"hello there")]), "is no array"),
    "objects": (archive([("a.npy", objects())]), "holds Python objects, which need pickle"),
    "a shape of terabytes": (archive([("a.npy", npy(header=header_of("(1000000, 1000000)")))]), "4000000000000 bytes"),
    "a negative shape": (archive([("a.npy", npy(header=header_of("(-4,)"), body=b"\0" * 16))]), "shape"),
    "a shape of text": (archive([("a.npy", npy(header=header_of("'four'")))]), "unreadable"),
    "a shape of thousands of digits": (
        archive([("a.npy", npy(header=header_of(f"({'9' * 4000}, {'9' * 4000})")))]),
        r"has the shape \(9+\.\.\.9+\)$",
    ),
    "a header that is code": (archive([("a.npy", npy(header="__import__('os').abort()"))]), "unreadable"),
    "a deep header": (archive([("a.npy", npy(header="(" * 9_000 + ")" * 900))]), "unreadable"),
    "a header of gigabytes": (
        archive([("a.npy", b"\x93NUMPY\2\0" + struct.pack("<I", 2**32 - 1))]),
        "would have 4294967295 bytes",
    ),
    "a way of compressing that NumPy does not write": (
        archive([("a.npy", npy(np.ones(4)))], zipfile.ZIP_LZMA),
        "'a.npy' is compressed in the way 14",
    ),
    "an offset before the file": (GOOD[:-6] + b"\xff\xff\xff\x7f\0\0", ""),
    "too few numbers": (archive([("a.npy", npy(header=header_of("(4,)"), body=b"\0" * 12))]), "needs 16 bytes"),
    "too many numbers": (archive([("a.npy", npy(header=header_of("(4,)"), body=b"\0" * 20))]), "needs 16 bytes"),
}


def written(folder, name, raw):
    file = folder / name
    file.write_bytes(raw)
    return file


def refused_with_little_memory(source, message):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            opened(source)
        assert tracemalloc.get_traced_memory()[1] < LITTLE_MEMORY
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("case", SAFETENSORS)
def test_a_safetensors_file_that_lies_is_refused(case, tmp_path):
    raw, message = SAFETENSORS[case]
    refused_with_little_memory(written(tmp_path, "x.safetensors", raw), f"x.safetensors is no sound .*{message}")


def test_a_head_is_read_beside_dtypes_that_numpy_does_not_have(tmp_path):
    kinds = {"F4": 2, "F6_E2M3": 3, "F6_E3M2": 3, "F8_E4M3": 4, "F8_E5M2": 4, "F8_E8M0": 4, "C64": 32}
    kinds |= {"F8_E4M3FNUZ": 4, "F8_E5M2FNUZ": 4, "F3_OF_LATER": 2, "PICKLE": 7}
    header, at = {}, 0
    for kind, size in kinds.items():
        header[kind] = {"dtype": kind, "shape": [4], "data_offsets": [at, at + size]}
        at += size
    header["a"] = ONE | {"data_offsets": [at, at + 8]}
    tensors = opened(written(tmp_path, "x.safetensors", safe(header, b"\0" * (at + 8)))).tensors
    assert tensors["a"].read().tolist() == [0, 0]
    for kind in kinds.keys() - safetensors.FLOAT8.keys():
        with pytest.raises(ValueError, match=f"^x.safetensors: '{kind}' has dtype {kind}, which NumPy does not have"):
            tensors[kind].read()


def test_a_head_in_float8_is_read_as_float32_of_the_same_values(tmp_path, monkeypatch):
    values = np.array([1.5, -0.25, 448.0])
    for kind, name in safetensors.FLOAT8.items():
        bits = values.astype(getattr(ml_dtypes, name)).tobytes()
        header = {"a": {"dtype": kind, "shape": [3], "data_offsets": [0, 3]}}
        read = opened(written(tmp_path, "x.safetensors", safe(header, bits))).tensors["a"].read()
        expected = np.frombuffer(bits, getattr(ml_dtypes, name)).astype(np.float32)
        assert read.dtype == np.float32
        np.testing.assert_array_equal(read, expected)
    monkeypatch.setattr(safetensors.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"'a' has dtype F8_E5M2FNUZ, which NumPy does not have; install ml_dtypes$"):
        opened(tmp_path / "x.safetensors").tensors["a"].read()


def test_a_safetensors_file_cut_anywhere_is_refused(tmp_path):
    whole = written(tmp_path, "x.safetensors", b"")
    safetensors.save(heads.tensors_of("torch_mha"), whole)
    raw = whole.read_bytes()
    assert opened(whole).tensors
    for length in range(0, len(raw), 7):
        with pytest.raises(ValueError, match="is no sound safetensors file"):
            opened(written(tmp_path, "y.safetensors", raw[:length]))


@pytest.mark.parametrize("case", NPZ)
def test_an_archive_that_lies_is_refused(case, tmp_path):
    raw, message = NPZ[case]
    refused_with_little_memory(written(tmp_path, "x.npz", raw), f"(?s)x.npz is no sound .npz file: .*{message}")


def test_an_archive_that_would_grow_beyond_what_compression_can_do_is_refused(tmp_path):
    raw = bytearray(archive([("a.npy", npy(np.zeros(10, np.float32)))], zipfile.ZIP_DEFLATED))
    at = raw.index(b"PK\1\2")
    raw[at + 24 : at + 28] = struct.pack("<I", 2**31)  # the size it says it has
    refused_with_little_memory(written(tmp_path, "x.npz", raw), "would grow from")


def test_an_archive_whose_numbers_were_damaged_is_refused_when_they_are_read(tmp_path):
    tensors = heads.tensors_of("torch_mha")
    file = tmp_path / "x.npz"
    np.savez(file, **tensors)
    raw = bytearray(file.read_bytes())
    at = raw.index(tensors["in_proj_weight"].tobytes())
    raw[at : at + 4] = b"\xff\xff\xff\xff"
    with pytest.raises(ValueError, match=r"is no sound .npz file: .*CRC"):
        formats.read(written(tmp_path, "y.npz", raw), "torch_mha", num_heads=2)


@pytest.mark.parametrize("name", ["x.pt", "x.bin", "x.ckpt", "x.pkl", "x.pth.tar"])
def test_a_pickle_is_not_opened_and_the_message_says_what_to_do(name, tmp_path):
    file = written(tmp_path, name, pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match=r"may be a pickle.*torch.load\(.*weights_only=True"):
        formats.read(file, "siglip", num_heads=2)
    with pytest.raises(ValueError, match="may be a pickle, which can run any code"):
        formats.read(tmp_path, "siglip", num_heads=2)


@pytest.mark.parametrize(
    "name", ["../x.safetensors", "/etc/passwd", "a/../../x", "..\\x.safetensors", "C:\\x", "\\\\host\\x", "C:x"]
)
def test_an_index_that_leads_out_of_its_folder_is_refused(name, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    safetensors.save(heads.tensors_of("siglip"), tmp_path / "x.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"probe": name}}))
    for source in (folder, index):
        with pytest.raises(ValueError, match="leads out of its folder"):
            opened(source)
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Pooling", "path": name}]))
    with pytest.raises(ValueError, match="leads out of its folder"):
        formats.read(folder, "sentence_transformers")


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("[]", "no `weight_map`"),
        ('{"weight_map": {"probe": 3}}', "no `weight_map`"),
        ('{"weight_map": {"probe": "absent.safetensors"}}', "names 'absent.safetensors', which is not there"),
        ('{"weight_map": {"probe": ""}}', "names '', which is no file"),
        ('{"weight_map": {"probe": "."}}', "names '.', which is no file"),
        (f'{{"weight_map": {{"probe": "{"x" * 5000}"}}}}', r"names 'x*\.\.\.x*', which is not there"),
        ('{"weight_map": {"other": "x.safetensors"}}', "x.safetensors does not have 'other'"),
        ("{", "is no JSON"),
    ],
)
def test_an_index_that_is_not_sound_is_refused(index, message, tmp_path):
    safetensors.save(heads.tensors_of("siglip"), tmp_path / "x.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ValueError, match=message):
        opened(tmp_path)


def test_names_in_files_are_names_and_no_paths(tmp_path):
    file = tmp_path / "x.npz"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("../../evil.npy", npy(np.ones(2)))
    assert list(opened(file).tensors) == ["../../evil"]
    assert opened(file).tensors["../../evil"].read().tolist() == [1, 1]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["x.npz"]


def test_what_numpy_writes_is_read(tmp_path):
    arrays = {
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big endian": np.arange(3, dtype=">f4"),
        "no axes": np.array(2.5),
        "nothing": np.zeros((0, 3)),
        "a/b": np.ones(2, np.float16),
    }
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "x.npz", **arrays)
        tensors = opened(tmp_path / "x.npz").tensors
        for name, array in arrays.items():
            got = tensors[name].read()
            assert got.dtype == array.dtype.newbyteorder("=") and got.shape == array.shape == tensors[name].shape
            np.testing.assert_array_equal(got, array)
