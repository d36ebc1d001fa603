package org.apache.iceberg;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.encryption.PlaintextEncryptionManager;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;

/**
 * Tells what Iceberg reads from a manifest list and its manifests, one line for each entry, and writes the data
 * files it found into a manifest and a list of its own. In Iceberg's package, because its lists are not public.
 *
 * <p>Arguments: format version, folder. The folder has list.avro, schema.json and spec.json, and gets
 * java-manifest.avro and java-list.avro.
 */
public final class ManifestExchange {
  private static final long SNAPSHOT = 77L;

  private record LocalFiles() implements FileIO {
    @Override
    public InputFile newInputFile(String path) {
      return Files.localInput(path);
    }

    @Override
    public OutputFile newOutputFile(String path) {
      return Files.localOutput(path);
    }

    @Override
    public void deleteFile(String path) {
      throw new UnsupportedOperationException(path);
    }
  }

  private ManifestExchange() {}

  public static void main(String[] arguments) throws Exception {
    int version = Integer.parseInt(arguments[0]);
    Path folder = Path.of(arguments[1]);
    Schema schema = SchemaParser.fromJson(java.nio.file.Files.readString(folder.resolve("schema.json")));
    PartitionSpec spec =
        PartitionSpecParser.fromJson(schema, java.nio.file.Files.readString(folder.resolve("spec.json")));
    Map<Integer, PartitionSpec> specs = Map.of(spec.specId(), spec);
    FileIO io = new LocalFiles();

    List<DataFile> found = new ArrayList<>();
    for (ManifestFile manifest : ManifestLists.read(io.newInputFile(folder.resolve("list.avro").toString()))) {
      if (manifest.content() == ManifestContent.DATA) {
        try (ManifestReader<DataFile> reader = ManifestFiles.read(manifest, io, specs)) {
          for (ManifestEntry<DataFile> entry : reader.entries()) {
            tell(entry, spec);
            found.add(entry.file().copy());
          }
        }
      } else {
        try (ManifestReader<DeleteFile> reader = ManifestFiles.readDeleteManifest(manifest, io, specs)) {
          for (ManifestEntry<DeleteFile> entry : reader.entries()) {
            tell(entry, spec);
          }
        }
      }
    }

    OutputFile file = io.newOutputFile(folder.resolve("java-manifest.avro").toString());
    ManifestWriter<DataFile> writer = ManifestFiles.write(version, spec, file, SNAPSHOT);
    found.forEach(writer::add);
    writer.close();
    OutputFile list = io.newOutputFile(folder.resolve("java-list.avro").toString());
    try (ManifestListWriter lists =
        ManifestLists.write(
            version,
            list,
            PlaintextEncryptionManager.instance(),
            SNAPSHOT,
            null,
            version == 1 ? 0L : 9L,
            version == 3 ? 500L : null)) {
      lists.add(writer.toManifestFile());
    }
  }

  private static <F extends ContentFile<F>> void tell(ManifestEntry<F> entry, PartitionSpec spec) {
    System.out.printf(
        "entry %s %d %d %d %s%n",
        entry.status(),
        entry.snapshotId(),
        entry.dataSequenceNumber(),
        entry.fileSequenceNumber(),
        ContentFileParser.toJson(entry.file(), spec));
  }
}
