"""Large bodies and files of jobs: blobs of one container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shared.errors import InputError
from shared.jobs import keys
from shared.jobs.store import BlobPage, StoredFile
from shared.jobs.table_parts import Parts
from shared.storage import make

#: Names of one page. Whoever looks at a page may have to ask for each of its jobs.
BLOB_PAGE: Final = 100


class Bodies(Parts):
    """See `shared.jobs.store`."""

    def put_blob(self, name: str, data: bytes) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        container = self._container
        try:
            container.upload_blob(name, data, overwrite=True)
        except ResourceNotFoundError:
            make(container.create_container)
            container.upload_blob(name, data, overwrite=True)

    def get_blob(self, name: str) -> bytes | None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            return self._container.download_blob(name).readall()
        except ResourceNotFoundError:
            return None

    def delete_blob(self, name: str) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            self._container.delete_blob(name)
        except ResourceNotFoundError:
            return

    def delete_parts(self, job_id: str) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            names = list(self._container.list_blob_names(name_starts_with=keys.parts_prefix(job_id)))
        except ResourceNotFoundError:
            return  # no body was ever stored
        for name in names:
            self.delete_blob(name)

    def put_artifact(self, name: str, data: bytes | Iterator[bytes], mime_type: str) -> None:
        from azure.core.exceptions import ResourceNotFoundError
        from azure.storage.blob import ContentSettings

        container = self._container
        settings = ContentSettings(content_type=mime_type)
        if not isinstance(data, bytes):
            # A stream cannot be sent twice, so the container is made before it is missed.
            make(container.create_container)
        try:
            container.upload_blob(name, data, overwrite=True, content_settings=settings)
        except ResourceNotFoundError:
            make(container.create_container)
            container.upload_blob(name, data, overwrite=True, content_settings=settings)

    def get_artifact(self, name: str, offset: int = 0, length: int | None = None) -> StoredFile | None:
        from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

        blob = self._container.get_blob_client(name)
        try:
            found = blob.download_blob() if length is None else blob.download_blob(offset, length)
            data, about = found.readall(), found.properties
        except ResourceNotFoundError:
            return None
        except HttpResponseError as error:
            if error.status_code != 416:
                raise
            data, about = b"", blob.get_blob_properties()  # the part lies behind the file's end
        size = int((about.content_range or "").rpartition("/")[2] or about.size)
        mime_type = about.content_settings.content_type or "application/octet-stream"
        return StoredFile(data, size, mime_type, str(about.etag))

    def blob_page(self, marker: str) -> BlobPage:
        from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

        pages = self._container.list_blob_names(results_per_page=BLOB_PAGE).by_page(marker or None)
        try:
            names = tuple(str(name) for name in next(pages, ()))
        except ResourceNotFoundError:
            return BlobPage((), "")
        except HttpResponseError as error:
            if error.status_code == 400 and marker:
                raise InputError("the list of bodies cannot go on from there") from error
            raise
        return BlobPage(names, getattr(pages, "continuation_token", None) or "")
